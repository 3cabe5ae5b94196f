package shared

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"k8s.io/utils/ptr"
)

// fresh returns a copy that shares no memory.
func fresh(text string) string { return strings.Clone(text) }

func TestPool(t *testing.T) {
	for name, text := range map[string]string{
		"short": "ab", "large": strings.Repeat("x", large+1), "as large as may be": strings.Repeat("x", veryLarge-100),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewPool()
			first, second := p.String(fresh(text)), p.String(fresh(text))
			if first != text || second != text || unsafe.StringData(first) != unsafe.StringData(second) {
				t.Error("two strings")
			}
			if a, b := p.Pointer(ptr.To(fresh(text))), p.Pointer(ptr.To(fresh(text))); a != b || *a != text {
				t.Error("two pointers")
			}
			a, b := p.Map(map[string]string{"a": fresh(text), "b": "c"}), p.Map(map[string]string{"b": "c", "a": fresh(text)})
			if !maps.Equal(a, map[string]string{"a": text, "b": "c"}) || fmt.Sprintf("%p", a) != fmt.Sprintf("%p", b) {
				t.Error("two maps")
			}
		})
	}
}

// What is told apart is what is handed in, whatever was handed in before, in whatever form.
func TestPoolTellsApart(t *testing.T) {
	p := NewPool()
	for range 2 {
		for _, text := range []string{"", "a", `map ["a" "a"]`, strings.Repeat("x", large+1), strings.Repeat("y", large+1), strings.Repeat("z", veryLarge+1)} {
			if p.String(text) != text || *p.Pointer(&text) != text {
				t.Errorf("%.20q became another", text)
			}
			want := map[string]string{text: text}
			if !maps.Equal(p.Map(want), want) {
				t.Errorf("a map of %.20q became another", text)
			}
		}
		for _, want := range []map[string]string{{"a": "b", "c": "d"}, {"a": "b"}, {"a": "b", "c": ""}, {"a": "b\x00c\x00d"}, {"a": `b" "c" "d`}} {
			if got := p.Map(want); !maps.Equal(got, want) {
				t.Errorf("%v became %v", want, got)
			}
		}
	}
	if p.Pointer(nil) != nil || p.Map(nil) != nil || p.Map(map[string]string{}) != nil {
		t.Error("nothing became something")
	}
}

// What changes after it was handed in does not change what others have.
func TestPoolCopies(t *testing.T) {
	p := NewPool()
	of, text := map[string]string{"a": "b"}, "abc"
	shared, pointer := p.Map(of), p.Pointer(&text)
	of["a"], text = "x", "x"
	if shared["a"] != "b" || *pointer != "abc" {
		t.Errorf("now there is %v, %s", shared, *pointer)
	}
}

// A pool forgets, so that it does not grow for ever, and is used side by side.
func TestPoolForgets(t *testing.T) {
	p := NewPool()
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range known {
				text := fmt.Sprint(worker, "-", i)
				if p.String(text) != text {
					t.Errorf("%s became another", text)
				}
			}
		})
	}
	group.Wait()
	for i := range 2 * knownLarge {
		p.String(fmt.Sprint(i, strings.Repeat("x", large)))
	}
	if p.strings.Len() > known || p.large.Len() > knownLarge {
		t.Errorf("it knows %d, and %d that are large", p.strings.Len(), p.large.Len())
	}
	p.String(strings.Repeat("x", veryLarge+1))
	if _, found := p.large.Get(strings.Repeat("x", veryLarge+1)); found {
		t.Error("it knows what is very large")
	}
}
