// Command control-plane builds the parts of the test control plane that are
// missing or outdated: all of them, or those that are named as arguments.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-dev/signalbox/test/cluster/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "control-plane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = binaries.All()
	}
	paths, err := binaries.Ensure(ctx, root, os.Stderr, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println(paths[name])
	}
	return nil
}
