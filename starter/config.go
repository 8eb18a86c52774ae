package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"belay/config"
	"belay/strictyaml"
)

func (c *cli) configVerb() *cobra.Command {
	group := &cobra.Command{
		Use:     "config <check|show>",
		Short:   "Check or show the configuration in BELAY_CONFIG",
		Example: "  belay config check\n  belay config show --json",
		Args:    cobra.ArbitraryArgs,
		RunE:    noSuchVerb,
	}
	group.AddCommand(
		&cobra.Command{
			Use:     "check",
			Short:   "Say everything that is wrong with the configuration",
			Example: "  BELAY_CONFIG=deploy/config belay config check",
			Args:    takes(),
			RunE: func(*cobra.Command, []string) error {
				b, err := c.bundle()
				if err != nil {
					return err
				}
				if c.asJSON {
					return c.object(map[string]any{"ok": true, "digest": b.Digest()})
				}
				c.say("%s is good: %d agents, %d models, %d tenants, %d sandbox profiles; digest %s",
					c.set.Config, len(b.Agents), len(b.Models), len(b.Tenants), len(b.Profiles), b.Digest().Short())
				return nil
			},
		},
		&cobra.Command{
			Use:     "show",
			Short:   "Show what the configuration defines",
			Example: "  belay config show --json | jq .agents.default",
			Args:    takes(),
			RunE: func(*cobra.Command, []string) error {
				b, err := c.bundle()
				if err != nil {
					return err
				}
				return c.showConfig(b)
			},
		},
	)
	return group
}

// bundle loads the configuration. With --json what is wrong with it is also told as objects.
func (c *cli) bundle() (*config.Bundle, error) {
	b, err := config.LoadDir(c.set.Config)
	if err == nil {
		return b, nil
	}
	if !c.asJSON {
		return nil, usagef("%w", err)
	}
	problems := strictyaml.Problems(err)
	for _, p := range problems {
		if err := c.object(map[string]any{"file": p.File, "line": p.Line, "path": p.Path, "problem": p.Text}); err != nil {
			return nil, err
		}
	}
	return nil, usagef("%d problems in %s", len(problems), c.set.Config)
}

func (c *cli) showConfig(b *config.Bundle) error {
	if c.asJSON {
		return c.object(map[string]any{ // secrets are not in it: it names the variables that hold them
			"digest": b.Digest(), "policy": b.Policy.Digest(), "agents": b.Agents, "models": b.Models, "tenants": b.Tenants,
			"profiles": b.Profiles, "reviewers": b.Reviewers,
		})
	}
	var s strings.Builder
	s.WriteString("AGENT\tMODEL\tCONFIRMS\tSANDBOX\tTOOLS\n")
	for _, n := range slices.Sorted(maps.Keys(b.Agents)) {
		a := b.Agents[n]
		fmt.Fprintf(&s, "%s\t%s\t%s\t%s\t%s\n", n, a.Model, a.Confirmation, a.Sandbox, strings.Join(a.Tools, ", "))
	}
	s.WriteString("\nMODEL\tID\tENDPOINT\tFALLBACK\n")
	for _, n := range slices.Sorted(maps.Keys(b.Models)) {
		m := b.Models[n]
		fmt.Fprintf(&s, "%s\t%s\t%s\t%s\n", n, m.Model, m.BaseURL, strings.Join(m.Fallback, ", "))
	}
	s.WriteString("\nTENANT\tAGENTS\tMODELS\n")
	for _, n := range slices.Sorted(maps.Keys(b.Tenants)) {
		t := b.Tenants[n]
		fmt.Fprintf(&s, "%s\t%s\t%s\n", n, strings.Join(t.Agents, ", "), strings.Join(t.Models, ", "))
	}
	fmt.Fprintf(&s, "\npolicy\t%s\nconfiguration\t%s\n", b.Policy.Digest().Short(), b.Digest().Short())
	_, err := fmt.Fprint(c.stdout, aligned(s.String()))
	return err
}
