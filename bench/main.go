// Command bench says what Belay costs: each figure stands beside its control, measured in the same run on the same dev
// server and the same worker, the two interleaved in pairs. What is compared is the median of the pairs' ratios, since
// absolute numbers move with the machine. `go run ./bench` prints one Markdown table; --help lists the figures.
//
// The control of a time is a bare Temporal workflow with the same number of activities on the same queues, in the same
// dispatch modes, that do nothing (bare.go). The goals are those of the table that it prints.
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
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
