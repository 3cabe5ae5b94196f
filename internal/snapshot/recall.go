package snapshot

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"k8s.io/utils/lru"
)

// Bounds of what is kept of that was read before: how many snapshots of either form, and of how
// many bytes and values of JSON each may be, so that nobody can fill the memory with large ones.
const (
	recalled       = 128
	recalledSize   = 32 << 10
	recalledValues = 2 << 10
)

// Most TrainJobs live on few states of few runtimes, and each is read again and again. What was
// read before is kept: of seals by all of them but the time, of TrainingRuntimeSnapshots by what
// they say, of ConfigMaps, of which it is a summary, by the text.
var (
	readSeals   = lru.New(recalled)
	readObjects = lru.New(recalled)
	readTexts   = lru.New(recalled)
)

// recall returns what was read before, as it was sealed at this time; nil when it was not.
func recall(from *lru.Cache, key string, at time.Time) *Snapshot {
	value, found := from.Get(key)
	if !found {
		return nil
	}
	s := *value.(*Snapshot)
	s.SealedAt = at
	return &s
}

// remember keeps what was read of this JSON, unless that is large.
func remember(in *lru.Cache, key string, s *Snapshot, content []byte) {
	if len(content) <= recalledSize && values(content) <= recalledValues {
		in.Add(strings.Clone(key), s)
	}
}

// whenSealed returns when the runtime was sealed, by the head of a seal as Seal writes it, and the
// rest, which is the same for whatever time; ok is false for other heads.
func whenSealed(value string) (at time.Time, rest string, ok bool) {
	if len(value) <= headSize {
		return time.Time{}, "", false
	}
	head, err := base64.StdEncoding.DecodeString(value[:headSize])
	// gzip's magic number, the method and no flags (RFC 1952, 2.3.1).
	if err != nil || len(head) != sealStart || string(head[:4]) != "\x1f\x8b\x08\x00" {
		return time.Time{}, "", false
	}
	if seconds := binary.LittleEndian.Uint32(head[4:]); seconds > 0 {
		at = time.Unix(int64(seconds), 0)
	}
	// What comes after the time decides nothing.
	return at, value[headSize:], true
}

// textRead is what was read of a ConfigMap: nil where that holds no runtime, and the revision that
// the runtime carries.
type textRead struct {
	snapshot *Snapshot
	carried  string
}

// rememberText keeps what was read of this YAML, unless that is large: it may be the larger form of
// JSON, or the smaller one.
func rememberText(text string, read textRead) {
	if len(text) <= recalledSize && (read.snapshot == nil || values(encode(read.snapshot.object)) <= recalledValues) {
		readTexts.Add(strings.Clone(text), read)
	}
}
