package main

import "testing"

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":          {},
		"everything":       {args: []string{"--webhook-host=127.0.0.1", "--webhook-port=1", "--cert-dir=/x", "--cert-secret=a", "--service=b", "--webhook-configuration=c", "--namespace=d", "--trainer-user=e", "--kueue-user=f", "--snapshots=false", "--gate=false", "--policies=false", "--drain=0"}},
		"a port too low":   {args: []string{"--webhook-port=0"}, want: "--webhook-port must be from 1 to 65535, not 0"},
		"a port too high":  {args: []string{"--webhook-port=65536"}, want: "--webhook-port must be from 1 to 65535, not 65536"},
		"a negative drain": {args: []string{"--drain=-1s"}, want: "--drain must not be negative, as -1s is"},
		"an unknown level": {args: []string{"--log-level=loud"}, want: `invalid value "loud" for flag -log-level: slog: level string "loud": unknown name`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("parse(%q) = %q, want %q", tc.args, got, tc.want)
			}
		})
	}
}

func TestParseTakesTheNamespaceFromThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "elsewhere")
	if o, err := parse(nil); err != nil || o.Namespace != "elsewhere" {
		t.Errorf("namespace = %q, %v; want elsewhere", o.Namespace, err)
	}
	if o, err := parse([]string{"--namespace=here"}); err != nil || o.Namespace != "here" {
		t.Errorf("namespace = %q, %v; want here", o.Namespace, err)
	}
	t.Setenv("POD_NAMESPACE", "")
	if o, err := parse(nil); err != nil || o.Namespace != "signalbox-system" {
		t.Errorf("namespace = %q, %v; want signalbox-system", o.Namespace, err)
	}
}
