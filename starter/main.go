// Command belay is Belay's command line, for the people who start tasks, answer them and judge their outcome. Everything it
// does is possible with the temporal command too: it talks to the same signals, updates and queries.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "belay:", err)
	}
	os.Exit(exitCode(err))
}
