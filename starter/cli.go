package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"belay/agent"
)

// version is set by the build.
var version = "dev"

// cli is one call of the command.
type cli struct {
	getenv func(string) string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	set    settings
	asJSON bool
	// Where Temporal is; what is not given comes from Temporal's own configuration.
	address, namespace, profile string
}

// run is the command: it does what args say. The error says in one line what went wrong; exitCode gives its code.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	c := &cli{getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return spelledOut(root.ExecuteContext(ctx))
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "belay <verb>",
		Short: "Start agent tasks, watch them, answer them and judge their outcome",
		Long: "belay starts agent tasks, watches them, answers them and judges their outcome.\n\n" + environment() +
			"\n\nExit codes: 0 done, 1 the task did not finish well, 2 bad usage or input, 3 Temporal can't be reached, 4 refused.",
		Example:           `  belay run "make the failing test pass" --workspace examples/calc` + "\n  belay pending\n  belay approve fix-calc c3",
		Version:           version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs, // RunE answers unknown verbs
		PersistentPreRunE: func(*cobra.Command, []string) (err error) { c.set, err = readSettings(); return err },
		RunE:              noSuchVerb,
	}
	flags := root.PersistentFlags()
	flags.BoolVar(&c.asJSON, "json", false, "print JSON: one object, or one a line")
	flags.StringVar(&c.address, "address", "", "host and port of the Temporal server")
	flags.StringVar(&c.namespace, "namespace", "", "Temporal namespace")
	flags.StringVar(&c.profile, "profile", "", "profile of Temporal's client configuration file")
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"}) // --help says it
	root.AddCommand(
		c.startVerb(), c.runVerb(), c.listVerb(), c.showVerb(), c.watchVerb(), c.eventsVerb(), c.diffVerb(), c.exportVerb(),
		c.pendingVerb(), c.approveVerb(), c.rejectVerb(), c.editVerb(), c.answerVerb(), c.messageVerb(),
		c.pauseVerb(agent.VerbPause), c.pauseVerb(agent.VerbResume), c.raiseVerb(), c.cancelVerb(), c.decideVerb(),
		c.configVerb(), c.policyVerb(),
	)
	root.InitDefaultCompletionCmd()
	if shells, _, err := root.Find([]string{"completion"}); err == nil {
		shells.Args, shells.RunE = cobra.ArbitraryArgs, noSuchVerb
	}
	return root
}

// noSuchVerb answers for a command that only groups others: help, or the verb that was meant.
func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var known []string
	for _, v := range cmd.Commands() {
		if v.IsAvailableCommand() {
			known = append(known, v.Name())
		}
	}
	slices.Sort(known)
	if near := agent.Nearest(args[0], known); near != "" {
		return usagef("unknown verb %q; did you mean %q?", args[0], near)
	}
	return usagef("unknown verb %q; expected one of %s", args[0], strings.Join(known, ", "))
}

// badFlag says what is wrong with a flag, and which one was meant.
func badFlag(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("%s: --%s: %q; expected %s", verbOf(cmd), bad.GetFlag().Name, bad.GetValue(), formOf(bad.GetFlag()))
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usagef("%s: --%s: missing; expected %s", verbOf(cmd), bare.GetFlag().Name, formOf(bare.GetFlag()))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usagef("%s: %w", verbOf(cmd), err)
	}
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return noSuchVerb(cmd, args)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := agent.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		return usagef("%s: unknown flag --%s; did you mean --%s?", verbOf(cmd), unknown.GetSpecifiedName(), near)
	}
	return usagef("%s: unknown flag --%s; see %s --help", verbOf(cmd), unknown.GetSpecifiedName(), cmd.CommandPath())
}

// formOf says what may stand after a flag.
func formOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return f.Usage
}

// verbOf is a command as an error names it.
func verbOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "belay ") }

// takes demands exactly these arguments, none of them empty; a name in brackets may be left out.
func takes(names ...string) cobra.PositionalArgs {
	least := 0
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return usagef("%s: %s is missing; usage: %s", verbOf(cmd), names[len(args)], cmd.UseLine())
		}
		if len(args) > len(names) {
			return usagef("%s: unexpected argument %q; usage: %s", verbOf(cmd), args[len(names)], cmd.UseLine())
		}
		if i := slices.Index(args, ""); i >= 0 {
			return usagef("%s: %s is empty; usage: %s", verbOf(cmd), names[i], cmd.UseLine())
		}
		return nil
	}
}

// say writes one line for people.
func (c *cli) say(format string, args ...any) { fmt.Fprintf(c.stdout, format+"\n", args...) }
