package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"belay/agent"
	"belay/events"
	"belay/store"
)

const (
	// dialTime is how long the server may take to say that it is there.
	dialTime = 5 * time.Second
	// answerTime is how long a task may take to answer a query or an update.
	answerTime = 10 * time.Second
)

// dial connects to Temporal as its own command would, with the flags on top.
func (c *cli) dial(ctx context.Context) (cl client.Client, namespace string, err error) {
	opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: c.profile})
	if err != nil {
		return nil, "", usagef("connection to Temporal: %w", err)
	}
	opts.HostPort = cmp.Or(c.address, opts.HostPort, client.DefaultHostPort)
	opts.Namespace = cmp.Or(c.namespace, opts.Namespace, client.DefaultNamespace)
	opts.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	opts.ConnectionOptions.GetSystemInfoTimeout = dialTime
	if cl, err = client.DialContext(ctx, opts); err != nil {
		return nil, "", coded{exitUnreachable, fmt.Errorf("can't reach Temporal at %s: %w", opts.HostPort, err)}
	}
	return cl, opts.Namespace, nil
}

// content opens the store. A folder that is not there is not made: whoever only reads has nothing there yet.
func (c *cli) content(ctx context.Context) (*store.Store, error) {
	if !strings.Contains(c.set.Store, "://") {
		if _, err := os.Stat(c.set.Store); errors.Is(err, os.ErrNotExist) {
			return store.Open(ctx, "mem://")
		}
	}
	return store.Open(ctx, c.set.Store)
}

// session is the connection of one verb: to the server and to the store.
type session struct {
	client.Client
	namespace string
	store     *store.Store
	tasks     events.Reader
}

func (c *cli) connect(ctx context.Context) (*session, error) {
	cl, namespace, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	st, err := c.content(ctx)
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("BELAY_STORE: %w", err)
	}
	tasks := events.Reader{Client: cl, Store: st, Tenant: agent.TenantID(c.set.Tenant)}
	return &session{Client: cl, namespace: namespace, store: st, tasks: tasks}, nil
}

func (s *session) close() {
	s.Client.Close()
	_ = s.store.Close() // nothing was written
}

// ask queries a workflow within answerTime.
func ask(ctx context.Context, cl client.Client, id, runID, query string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	value, err := cl.QueryWorkflow(ctx, id, runID, query)
	if err != nil {
		if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
			return agent.Errorf(agent.InvalidInput, "no workflow %q in this namespace", id)
		}
		return answerOf(id, err)
	}
	if err := value.Get(answer); err != nil {
		return fmt.Errorf("query %s of %s: %w", query, id, err)
	}
	return nil
}
