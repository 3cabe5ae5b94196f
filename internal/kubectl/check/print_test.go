package check

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

func TestTable(t *testing.T) {
	answer := Answer{Fault, []Item{
		{"Kubernetes", OK, "v1.36.3", ""},
		{"webhook", Fault, "no pod of signalbox-webhook is ready: TrainJobs cannot be created", "look at its pods"},
		{"policies", Warning, "LifecyclePolicy/a\x1b[31m selects none of 3 namespaces", ""},
		{"clock", Unknown, "not known: no right\nto ask", ""},
	}}
	for name, tc := range map[string]struct {
		terminal kubectl.Terminal
		headless bool
		want     string
	}{
		"in a pipe": {kubectl.Terminal{}, false, `RESULT   CHECK        FINDING
ok       Kubernetes   v1.36.3
fault    webhook      no pod of signalbox-webhook is ready: TrainJobs cannot be created; to do: look at its pods
warning  policies     LifecyclePolicy/a[31m selects none of 3 namespaces
unknown  clock        not known: no right to ask
`},
		"without a header": {kubectl.Terminal{Width: 200}, true, `ok       Kubernetes   v1.36.3
fault    webhook      no pod of signalbox-webhook is ready: TrainJobs cannot be created; to do: look at its pods
warning  policies     LifecyclePolicy/a[31m selects none of 3 namespaces
unknown  clock        not known: no right to ask
`},
		"narrow": {kubectl.Terminal{Width: 50}, false, `RESULT   CHECK        FINDING
ok       Kubernetes   v1.36.3
fault    webhook      no pod of signalbox-webhook
                      is ready: TrainJobs cannot
                      be created
                      to do: look at its pods
warning  policies     LifecyclePolicy/a[31m
                      selects none of 3 namespaces
unknown  clock        not known: no right to ask
`},
		"narrower than the other columns": {kubectl.Terminal{Width: 15}, true, `ok       Kubernetes
  v1.36.3
fault    webhook
  no pod of
  signalbox-webhook
  is ready:
  TrainJobs
  cannot be
  created
  to do: look
  at its pods
warning  policies
  LifecyclePolicy/a[31m
  selects none
  of 3
  namespaces
unknown  clock
  not known: no
  right to ask
`},
		"in colour": {kubectl.Terminal{Colour: true, Width: 200}, true, "\x1b[32mok\x1b[0m       Kubernetes   v1.36.3\n" +
			"\x1b[31mfault\x1b[0m    webhook      no pod of signalbox-webhook is ready: TrainJobs cannot be created; to do: look at its pods\n" +
			"\x1b[33mwarning\x1b[0m  policies     LifecyclePolicy/a[31m selects none of 3 namespaces\n" +
			"\x1b[36munknown\x1b[0m  clock        not known: no right to ask\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := table(&out, answer, tc.terminal, tc.headless); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
