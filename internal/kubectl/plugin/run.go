// Package plugin puts the commands of the kubectl plugin together.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// completer is the name under which kubectl looks for the program that completes what follows
// "kubectl signalbox". A link of that name to the plugin is such a program.
const completer = "kubectl_complete-signalbox"

// Arguments returns the arguments of the plugin from those of its process, the first of which is its name:
// as the completer, it completes.
func Arguments(process []string) []string {
	if len(process) == 0 {
		return nil
	}
	name := filepath.Base(process[0])
	if strings.TrimSuffix(name, ".exe") == completer {
		return append([]string{cobra.ShellCompRequestCmd}, process[1:]...)
	}
	return process[1:]
}

// Quiet has the clients log nothing, for the rest of the process: what users need to know is in errors and
// notes.
func Quiet() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
}

// interrupted is the code of a command that ctx has ended, by which shells know an interrupt.
const interrupted = 130

// Run runs the plugin with these arguments, and returns the code to exit with. A command that ctx ends before it
// has an answer says nothing, and exits with 130; one that goes on until it is ended, as list --watch, with 0.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := New(NewOptions(streams))
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	return exit(streams, command, ended(ctx, err))
}

// ended returns the error; that somebody has interrupted the plugin is a code without a word.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return &kubectl.ExitError{Code: interrupted}
	}
	return err
}

// exit says what has failed, and returns the code to exit with.
func exit(streams genericiooptions.IOStreams, command *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	code := failure(command)
	if own := (*kubectl.ExitError)(nil); errors.As(err, &own) {
		code, err = own.Code, own.Err
	}
	if err != nil {
		fmt.Fprintln(streams.ErrOut, "error:", kubectl.Clean(err.Error()))
	}
	return code
}

// failure returns the code of a failure: 1 has a meaning of its own where a command compares.
func failure(command *cobra.Command) int {
	if command != nil && slices.Contains([]string{"diff", "check"}, command.Name()) {
		return 2
	}
	return 1
}
