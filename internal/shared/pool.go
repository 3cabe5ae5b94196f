// Package shared keeps one copy of what many objects of a cache have in common, such as the names
// of annotations and the content of a runtime: of a hundred thousand TrainJobs most say the same.
package shared

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/lru"
)

// Bounds of a pool, so that what is no longer anywhere else takes little: how many different values
// of a type it knows, and how many of those that are large, in bytes; values that are very large it
// does not know at all. What it forgets is kept once more when it comes again.
const (
	known      = 4096
	knownLarge = 128
	large      = 1 << 10
	veryLarge  = 512 << 10
)

// Pool hands out one copy of equal values, which nobody may change. It may be used from any
// goroutine.
type Pool struct {
	strings, pointers, maps, large *lru.Cache
}

// NewPool returns an empty pool.
func NewPool() *Pool {
	return &Pool{strings: lru.New(known), pointers: lru.New(known), maps: lru.New(known), large: lru.New(knownLarge)}
}

// String returns the text, from memory that holds nothing else.
func (p *Pool) String(text string) string {
	return once(p.of(p.strings, text), text, func(key string) string { return key })
}

// Pointer returns a pointer to the text; nil for nil.
func (p *Pool) Pointer(text *string) *string {
	if text == nil {
		return nil
	}
	return once(p.of(p.pointers, *text), *text, func(key string) *string { return &key })
}

// Map returns the map; nil for one that is empty.
func (p *Pool) Map(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, name, of[name])
	}
	key := fmt.Sprintf("map %q", parts)
	return once(p.of(p.maps, key), key, func(string) map[string]string { return maps.Clone(of) })
}

// of returns the cache for a key: the given one, that of large keys, or nil for none.
func (p *Pool) of(small *lru.Cache, key string) *lru.Cache {
	switch {
	case len(key) > veryLarge:
		return nil
	case len(key) > large:
		return p.large
	}
	return small
}

// once returns what the cache, nil for none, has under the key, or else puts there what is made of
// a copy of the key.
func once[T any](cache *lru.Cache, key string, value func(key string) T) T {
	if cache == nil {
		return value(key)
	}
	if found, ok := cache.Get(key); ok {
		if value, ok := found.(T); ok {
			return value
		}
	}
	key = strings.Clone(key)
	made := value(key)
	cache.Add(key, made)
	return made
}
