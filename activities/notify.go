package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"belay/agent"
)

// NotifyInput tells people that a task waits for them.
type NotifyInput struct {
	Run        agent.RunRef   `json:"run"`
	WorkflowID string         `json:"workflow_id"`
	Step       int            `json:"step"`
	ID         string         `json:"id"` // of the call or question, unique in the run
	Kind       string         `json:"kind"`
	Text       string         `json:"text"`
	Reviewers  []agent.UserID `json:"reviewers,omitempty"`
	Command    string         `json:"command"` // that answers
	Notes      []agent.Note   `json:"notes,omitempty"`
}

// Notify writes to the log and, where the configuration names a webhook, posts there. The post carries the header
// Idempotency-Key, since an attempt may come again.
func (a *Activities) Notify(ctx context.Context, in NotifyInput) error {
	a.c.Log.Info("a task waits for people", "workflow", in.WorkflowID, "kind", in.Kind, "id", in.ID, "what", in.Text, "command", in.Command)
	hook := a.c.Bundle().Webhook()
	if hook == "" {
		return nil
	}
	in.Notes = nil
	body, err := json.Marshal(in)
	if err != nil {
		return a.short(ctx, agent.Errorf(agent.StateError, "notification %s: %w", in.ID, err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook, bytes.NewReader(body))
	if err != nil {
		return a.short(ctx, agent.Errorf(agent.InvalidInput, "webhook: not a URL"))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("%s/%s/%s", in.Run.Run, in.Kind, in.ID))
	res, err := a.c.HTTP.Do(req)
	if err != nil {
		return a.short(ctx, agent.Errorf(agent.NetworkError, "webhook: %v", redactURL(err)))
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return a.short(ctx, agent.Errorf(agent.NetworkError, "webhook answered %s", res.Status))
	}
	return nil
}

// redactURL leaves out the address of a webhook, which may hold a secret.
func redactURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
