package snapshot

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"k8s.io/utils/lru"
)

// Bounds of what is kept of that was read before, so that nobody can fill the memory: how many of
// each form, how many bytes what was read and what it was read from may have, and how many values
// of JSON. A value takes some 300 bytes, so that all of one form take 25 MB at the very most.
const (
	recalled       = 64
	recalledSize   = 32 << 10
	recalledValues = 1 << 10
)

// Most TrainJobs live on few states of few runtimes, and each is read again and again. What was
// read before is kept: of seals by all of them but the time, of TrainingRuntimeSnapshots by what
// they say, of ConfigMaps, of which it is no more than what names the content, by the text.
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
	if len(key) <= recalledSize && len(content) <= recalledSize && values(content) <= recalledValues {
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

// textRead is what was read of a ConfigMap: whose content it is, nil where that is no runtime, and
// the revision that the content carries.
type textRead struct {
	snapshot *Snapshot
	carried  string
}

// rememberText keeps what was read of this YAML, unless that is large.
func rememberText(text string, read textRead) {
	if len(text) <= recalledSize {
		readTexts.Add(strings.Clone(text), read)
	}
}
