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

	"go.temporal.io/api/enums/v1"
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

// content opens the store. A folder that is not there is not made, since whoever only reads has nothing there yet: the store
// is empty then, and absent says why.
func (c *cli) content(ctx context.Context) (st *store.Store, absent, err error) {
	if !strings.Contains(c.set.Store, "://") {
		if _, err := os.Stat(c.set.Store); errors.Is(err, os.ErrNotExist) {
			absent = usagef("BELAY_STORE: there is no folder %q here; expected where the worker keeps its store", c.set.Store)
			st, err = store.Open(ctx, "mem://")
			return st, absent, err
		}
	}
	st, err = store.Open(ctx, c.set.Store)
	return st, nil, err
}

// session is the connection of one verb: to the server and to the store.
type session struct {
	client.Client
	namespace string
	store     *store.Store
	absent    error // why the store is empty; nil: it is the worker's
	tasks     events.Reader
}

func (c *cli) connect(ctx context.Context) (*session, error) {
	cl, namespace, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	st, absent, err := c.content(ctx)
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("BELAY_STORE: %w", err)
	}
	tasks := events.Reader{Client: cl, Store: st, Tenant: agent.TenantID(c.set.Tenant)}
	return &session{Client: cl, namespace: namespace, store: st, absent: absent, tasks: tasks}, nil
}

func (s *session) close() {
	s.Client.Close()
	_ = s.store.Close() // nothing was written
}

// errEnded refuses what only an open workflow can do or tell.
var errEnded = coded{exitRefused, errors.New("it has ended")}

// running says why a task can't be spoken to: there is none of that id, or it has ended.
func (s *session) running(ctx context.Context, id string) error {
	found, err := s.tasks.Find(ctx, id, "")
	if err == nil && !found.Open {
		return fmt.Errorf("task %q: %w", id, errEnded)
	}
	return err
}

// ask queries a workflow within answerTime, whether it is open or has closed.
func ask(ctx context.Context, cl client.Client, id, runID, query string, answer any) error {
	return queried(ctx, cl, &client.QueryWorkflowWithOptionsRequest{WorkflowID: id, RunID: runID, QueryType: query}, answer)
}

// askOpen is ask for what only an open workflow has; one that has closed is errEnded.
func askOpen(ctx context.Context, cl client.Client, id, runID, query string, answer any) error {
	return queried(ctx, cl, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: id, RunID: runID, QueryType: query, QueryRejectCondition: enums.QUERY_REJECT_CONDITION_NOT_OPEN,
	}, answer)
}

// queried sends one query and reads its answer.
func queried(ctx context.Context, cl client.Client, q *client.QueryWorkflowWithOptionsRequest, answer any) error {
	id, query := q.WorkflowID, q.QueryType
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	value, err := cl.QueryWorkflowWithOptions(ctx, q)
	if err != nil {
		if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
			return agent.Errorf(agent.InvalidInput, "no workflow %q in this namespace", id)
		}
		return answerOf(id, err)
	}
	if value.QueryRejected != nil {
		return errEnded
	}
	if err := value.QueryResult.Get(answer); err != nil {
		return fmt.Errorf("query %s of %s: %w", query, id, err)
	}
	return nil
}
