package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"belay/agent"
	"belay/workflows"
)

// decider is who answers, and how: after a look, or from a script.
type decider struct {
	by     string
	digest string
	yes    bool
}

func (d *decider) register(cmd *cobra.Command, c *cli) {
	cmd.Flags().StringVar(&d.by, "by", strings.ToLower(c.getenv("USER")), "who says it")
}

func (d *decider) registerCall(cmd *cobra.Command, c *cli) {
	d.register(cmd, c)
	cmd.Flags().StringVar(&d.digest, "digest", "", "digest of the action that was looked at, at least 12 hex digits; default: of the action that is shown")
	cmd.Flags().BoolVar(&d.yes, "yes", false, "do not ask; needs --digest")
}

// who checks the name that the answer is given in.
func (d *decider) who() error {
	if d.by == "" {
		return usagef("--by: missing, and USER is not set; expected who says it")
	}
	if !agent.ValidName(d.by) {
		return usagef("--by: %q; expected who says it: %s", d.by, agent.NameForm)
	}
	return nil
}

// check is who, for an answer about a call: it must be about something that was looked at.
func (d *decider) check() error {
	if d.yes && d.digest == "" {
		return usagef("--yes: needs --digest, so that nothing is decided that nobody looked at")
	}
	return d.who()
}

func (c *cli) approveVerb() *cobra.Command {
	return c.callVerb(agent.VerbApprove, "comment", "comment for the record", &cobra.Command{
		Use:     "approve <id> <call>",
		Short:   "Let one pending call run, after a look at it",
		Example: "  belay approve fix-calc c3\n  belay approve fix-calc c3 --yes --digest 5f1c2a9be012 --by ana",
	})
}

func (c *cli) rejectVerb() *cobra.Command {
	return c.callVerb(agent.VerbReject, "feedback", "what the model is told", &cobra.Command{
		Use:     "reject <id> <call>",
		Short:   "Keep one pending call from running, and tell the model why",
		Example: "  belay reject fix-calc c3 --feedback 'use the staging database'",
	})
}

// callVerb completes a verb that decides about a call and may carry a text.
func (c *cli) callVerb(verb agent.Verb, field, about string, cmd *cobra.Command) *cobra.Command {
	var d decider
	var text string
	cmd.Args = takes("<id>", "<call>")
	cmd.ValidArgsFunction = c.completeCall
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.decideCall(cmd.Context(), &d, verb, args[0], agent.CallID(args[1]), map[string]any{field: text})
	}
	d.registerCall(cmd, c)
	cmd.Flags().StringVar(&text, field, "", about)
	return cmd
}

// decideCall shows a call, asks, and sends the decision about exactly that call.
func (c *cli) decideCall(ctx context.Context, d *decider, verb agent.Verb, id string, call agent.CallID, body map[string]any) error {
	if err := d.check(); err != nil {
		return err
	}
	body["call"], body["by"], body["digest"] = call, d.by, d.digest
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if !d.yes {
		w, err := s.call(ctx, id, call)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.stderr, w)
		if body["digest"] == "" {
			body["digest"] = w.Digest
		}
		if err := c.confirm(fmt.Sprintf("%s %s as %s?", verb, call, d.by)); err != nil {
			return err
		}
	}
	return c.tell(ctx, s, id, verb, body)
}

// confirm asks for a yes.
func (c *cli) confirm(question string) error {
	fmt.Fprintf(c.stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(c.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return coded{exitNotWell, errors.New("nothing was sent: not confirmed")}
}

// tell sends a control message to a task as an update, so that a refusal is known at once.
func (c *cli) tell(ctx context.Context, s *session, id string, verb agent.Verb, body map[string]any) error {
	raw, err := json.Marshal(given(body))
	if err != nil {
		return err
	}
	if _, err := agent.DecodeControl(verb, raw); err != nil {
		return err
	}
	if err := s.running(ctx, id); err != nil {
		return err
	}
	var got workflows.Recorded
	if err := update(ctx, s, id, string(verb), raw, &got); err != nil {
		return err
	}
	if c.asJSON {
		return c.object(got)
	}
	c.say("Recorded: %s.", got.Recorded)
	if got.Digest != "" {
		c.say("The action that runs instead: %s", got.Digest)
	}
	return nil
}

// update sends one update and waits for its answer.
func update(ctx context.Context, cl client.Client, id, name string, raw []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	h, err := cl.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateID: uuid.NewString(), UpdateName: name, Args: []any{json.RawMessage(raw)},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, answer)
	}
	return answerOf(id, err)
}
