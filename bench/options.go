package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
)

// options are what a run measures, and how much of it.
type options struct {
	only    []string
	pairs   int
	steps   int // of a task whose time is measured
	at      int // tasks at one time, where many run
	long    int // steps of the long task whose growth is measured
	endless int // steps of the task that goes through continue-as-new
	parked  int // parked tasks in one sample
	profile string
}

// figures are the parts of a run, in their order.
var figures = []struct {
	name, what string
	measure    func(context.Context, *rig, options, *report) error
}{
	{"overhead", "latency, throughput and CPU beside a bare workflow", overhead},
	{"growth", "bytes and events of history, bytes of store", growth},
	{"endless", "a task that goes through continue-as-new", endless},
	{"park", "worker memory of tasks that wait for a person", park},
	{"cached", "the same of tasks in the worker's cache", cached},
	{"context", "store reads to build the model's context", contextReads},
	{"phases", "time and CPU of each activity", phases},
}

func readOptions(args []string, out io.Writer) (options, error) {
	var o options
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&only, "only", "", "measure these figures only, separated by commas")
	flags.IntVar(&o.pairs, "pairs", 5, "pairs of samples behind each ratio")
	flags.IntVar(&o.steps, "steps", 20, "steps of a task whose time is measured")
	flags.IntVar(&o.at, "tasks", 16, "tasks at one time, where throughput is measured")
	flags.IntVar(&o.long, "long", 400, "steps of the task whose growth is measured")
	flags.IntVar(&o.endless, "endless", 5000, "steps of the task that goes through continue-as-new")
	flags.IntVar(&o.parked, "parked", 500, "parked tasks in one sample")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process to the file")
	flags.Usage = func() {
		fmt.Fprint(out, "bench says what Belay costs, beside a bare Temporal workflow. The figures:\n\n")
		for _, f := range figures {
			fmt.Fprintf(out, "  %-9s %s\n", f.name, f.what)
		}
		fmt.Fprint(out, "\nFlags:\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	return o, o.validate(flags.Args())
}

func (o options) validate(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q; expected flags only", rest[0])
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"pairs", o.pairs}, {"steps", o.steps}, {"tasks", o.at}, {"long", o.long}, {"endless", o.endless}, {"parked", o.parked}} {
		if n.value < 1 {
			return fmt.Errorf("--%s: %d; expected at least 1", n.flag, n.value)
		}
	}
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only: %q; expected some of %v", name, names)
		}
	}
	return nil
}

// run measures what was asked for and prints the table. A goal that is missed is told, and is not an error: numbers of
// one machine fail no build.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := readOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := newRig(ctx, dir)
	if err != nil {
		return err
	}
	defer r.close()
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	rep := &report{log: stderr}
	for _, f := range figures {
		if len(o.only) > 0 && !slices.Contains(o.only, f.name) {
			continue
		}
		fmt.Fprintf(stderr, "%s: %s\n", f.name, f.what)
		if err := f.measure(ctx, r, o, rep); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return rep.print(stdout)
}
