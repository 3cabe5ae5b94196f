package cli_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/signalbox-dev/signalbox/internal/kubectl/plugin"
)

// arguments returns those of the plugin with the scene's cluster, user and, unless they say another,
// namespace.
func (s *scene) arguments(args []string) []string {
	named := slices.ContainsFunc(args, func(arg string) bool {
		return arg == "-A" || arg == "-n" || strings.HasPrefix(arg, "--all-namespaces") || strings.HasPrefix(arg, "--namespace")
	})
	flags := []string{"--kubeconfig", s.kubeconfig, "--cache-dir", s.cache}
	if !named {
		flags = append(flags, "--namespace", s.namespace)
	}
	// Completion goes by the last argument.
	if len(args) > 0 && args[0] == "__complete" {
		return slices.Concat(args[:2], flags, args[2:])
	}
	return slices.Concat(args, flags)
}

// run runs the plugin as a script would, in this process, and returns what it printed and its exit code.
func (s *scene) run(args ...string) (stdout, stderr string, code int) {
	s.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	code = plugin.Run(s.ctx, s.arguments(args), streams)
	return out.String(), errOut.String(), code
}

// succeeds runs the plugin and returns what it printed to standard output. It must exit with 0 and say
// nothing else.
func (s *scene) succeeds(args ...string) string {
	s.Helper()
	out, errOut, code := s.run(args...)
	if code != 0 || errOut != "" {
		s.Fatalf("%s: exit code %d, standard error:\n%s", strings.Join(args, " "), code, errOut)
	}
	return out
}

// process is the plugin, which runs beside the test, in this process: list --watch.
type process struct {
	s           *scene
	out, errOut shared
	end         func()
	code        chan int
}

// shared is a buffer that is read while it is written.
type shared struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *shared) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(data)
}

func (b *shared) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// start runs the plugin until stop, or the test's end.
func (s *scene) start(args ...string) *process {
	ctx, cancel := context.WithCancel(s.ctx)
	p := &process{s: s, code: make(chan int, 1), end: cancel}
	go func() {
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &p.out, ErrOut: &p.errOut}
		p.code <- plugin.Run(ctx, s.arguments(args), streams)
	}()
	s.Cleanup(func() { _ = p.stop() })
	return p
}

// prints waits until standard output has this text.
func (p *process) prints(text string) {
	p.s.Helper()
	p.s.eventually("the text "+text, func() (bool, string) {
		out := p.out.String()
		return strings.Contains(out, text), "\n" + out + "\nand on standard error\n" + p.errOut.String()
	})
}

// stop interrupts the plugin and returns its exit code. A second call does nothing, and returns 0.
func (p *process) stop() int {
	p.end()
	code, ok := <-p.code
	if ok {
		close(p.code)
	}
	return code
}
