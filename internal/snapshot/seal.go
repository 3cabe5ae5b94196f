package snapshot

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Sizes in bytes up to which a TrainJob is sealed. The API takes 256 KiB of annotations and
// about 1.5 MiB of object; what is left is room for others.
const (
	// MaxCompressed bounds the compressed runtime.
	MaxCompressed = 64 << 10
	// MaxAnnotations bounds all annotations of the TrainJob, keys and values, with the seal.
	MaxAnnotations = 192 << 10
	// MaxTrainJob bounds the TrainJob as JSON, with the seal.
	MaxTrainJob = 1 << 20
)

// maxSkew is how much earlier than its TrainJob a seal may be, by clocks that differ: one that
// is older was copied from another TrainJob.
const maxSkew = 5 * time.Minute

// What becomes of a TrainJob that is to be sealed: values of the label result of the metric.
// Those of a size that is over its bound name it.
const (
	Sealed              = "sealed"
	RuntimeMissing      = "runtime_missing"
	TooLargeCompressed  = "too_large_compressed"
	TooLargeAnnotations = "too_large_annotations"
	TooLargeTrainJob    = "too_large_trainjob"
	TooLargeContent     = "too_large_content"
)

// What is sealed is unpacked in many places at once, so its size in memory is bounded. Where the
// webhook does not look, anybody can write a seal that is small and unpacks to much.
const (
	// maxContent bounds the JSON, in bytes; no API server stores an object as large.
	maxContent = 2 << 20
	// maxValues bounds how many values it has: an empty one of two bytes takes some hundred in
	// memory. An ordinary runtime of 1 MiB has half as many.
	maxValues = 64 << 10
)

// sealStart is how many bytes of the compressed content are written anew by each seal: in them is
// where gzip keeps the time of its file, seconds since 1970 in four bytes from the fourth on, the
// least first (RFC 1952, 2.3.1). That is when it was sealed. It is a multiple of three, so that the
// base64 of what comes after them does not depend on them, and no more than the ten bytes of the
// header.
const sealStart = 9

// Packed is a snapshot that is ready to be sealed into any number of TrainJobs. Packing is
// work, so it is done once for each state of a runtime.
type Packed struct {
	// Settings are what the runtime says about the lifecycle of its TrainJobs.
	Settings trainer.RuntimeSettings

	source, revision string
	// start are the first bytes of the compressed content, rest is what comes after them as base64;
	// both are empty when it is too large.
	start [sealStart]byte
	rest  string
	// size is that of the compressed content, original that of the JSON, values how many values it
	// has.
	size, original, values int
}

// Pack compresses the snapshot.
func (s *Snapshot) Pack() *Packed {
	content := encode(s.object)
	var out bytes.Buffer
	compressor := gzip.NewWriter(&out)
	// Writing to memory cannot fail.
	_, _ = compressor.Write(content)
	_ = compressor.Close()
	p := &Packed{Settings: s.Settings(), source: Name(s.Source), revision: s.Revision, size: out.Len(), original: len(content), values: values(content)}
	if p.size <= MaxCompressed && p.readable() {
		p.rest = base64.StdEncoding.EncodeToString(out.Bytes()[copy(p.start[:], out.Bytes()):])
	}
	return p
}

// readable tells whether the snapshot could be unpacked again.
func (p *Packed) readable() bool { return p.original <= maxContent && p.values <= maxValues }

// values returns how many values a JSON text has at most: each follows one of these characters, or
// is the first.
func values(content []byte) int {
	count, quoted := 1, false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++ // what is escaped ends nothing
		case !quoted && (c == '{' || c == '[' || c == ','):
			count++
		}
	}
	return count
}

// Seal returns the annotations that seal the snapshot, which is not too large, into a TrainJob.
func (p *Packed) Seal(at time.Time) map[string]string {
	start := p.start
	binary.LittleEndian.PutUint32(start[4:], uint32(at.Unix()))
	return map[string]string{
		v1alpha1.AnnotationRuntimeSource:   p.source,
		v1alpha1.AnnotationRuntimeRevision: p.revision,
		v1alpha1.AnnotationRuntimeSnapshot: base64.StdEncoding.EncodeToString(start[:]) + p.rest,
	}
}

// TooLarge says why the snapshot must not be sealed into a TrainJob that is this many bytes
// of JSON and has this many bytes of annotations without the seal, and which size it is, as
// the metric has it; both are "" when it may.
func (p *Packed) TooLarge(trainJob, annotations int) (limit, text string) {
	if p.size > MaxCompressed {
		return TooLargeCompressed, fmt.Sprintf("%s is %d bytes compressed (%d in full), more than %d", p.source, p.size, p.original, MaxCompressed)
	}
	if !p.readable() {
		return TooLargeContent, fmt.Sprintf("%s is %d bytes of %d values, more than %d or %d", p.source, p.original, p.values, maxContent, maxValues)
	}
	seal := len(v1alpha1.AnnotationRuntimeSource) + len(p.source) +
		len(v1alpha1.AnnotationRuntimeRevision) + len(p.revision) +
		len(v1alpha1.AnnotationRuntimeSnapshot) + base64.StdEncoding.EncodedLen(p.size)
	switch {
	case annotations+seal > MaxAnnotations:
		return TooLargeAnnotations, fmt.Sprintf("the annotations of the TrainJob would be %d bytes with the %d of the snapshot, more than %d", annotations+seal, seal, MaxAnnotations)
	case trainJob+seal > MaxTrainJob:
		return TooLargeTrainJob, fmt.Sprintf("the TrainJob would be %d bytes with the %d of the snapshot, more than %d", trainJob+seal, seal, MaxTrainJob)
	}
	return "", ""
}

// Of returns the snapshot that is sealed into the TrainJob; nil when it is not sealed. What
// does not hold together, or is of another runtime than the TrainJob's, is an error: only
// while the webhook is away can a client write such a thing.
func Of(job *trainer.TrainJob) (*Snapshot, error) {
	value, sealed := job.Annotations[v1alpha1.AnnotationRuntimeSnapshot]
	if !sealed {
		return nil, nil
	}
	s, err := unpack(value + job.Annotations[restKey])
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationRuntimeSnapshot, err)
	}
	if s.Revision != job.Annotations[v1alpha1.AnnotationRuntimeRevision] {
		return nil, fmt.Errorf("annotation %s is not the revision of what is sealed, which is %s", v1alpha1.AnnotationRuntimeRevision, s.Revision)
	}
	if !job.CreationTimestamp.IsZero() && s.SealedAt.Before(job.CreationTimestamp.Add(-maxSkew)) {
		return nil, fmt.Errorf("annotation %s was sealed at %s, before the TrainJob was created", v1alpha1.AnnotationRuntimeSnapshot, s.SealedAt)
	}
	if !s.IsOf(job) {
		return nil, fmt.Errorf("annotation %s is of %s, not the runtime of the TrainJob", v1alpha1.AnnotationRuntimeSnapshot, Name(s.Source))
	}
	return s, nil
}

func unpack(value string) (*Snapshot, error) {
	at, rest, ordinary := whenSealed(value)
	if ordinary {
		if s := recall(readSeals, rest, at); s != nil {
			return s, nil
		}
	}
	compressed, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxContent+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxContent {
		return nil, fmt.Errorf("more than %d bytes", maxContent)
	}
	if values(content) > maxValues {
		return nil, fmt.Errorf("more than %d values", maxValues)
	}
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	s, err := Take(object)
	if err != nil {
		return nil, err
	}
	s.SealedAt = reader.ModTime
	if ordinary {
		remember(readSeals, rest, s, content)
	}
	return s, nil
}
