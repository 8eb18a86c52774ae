package openai_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"belay/agent"
	"belay/model"
	"belay/model/openai"
	"belay/model/scripted"
)

// key is what must never be seen outside a request's header.
const key = "sk-test-2f9d0c7e41"

func config() model.Config {
	return model.Config{
		Name: "m", BaseURL: "http://model.test/v1", APIKeyEnv: "MODEL_KEY", Model: "scripted/s",
		ContextWindow: 8000, MaxOutputTokens: 1000,
		Prices:   model.Prices{Input: 2, CachedInput: new(1.0), Output: 10},
		Timeouts: model.Timeouts{FirstToken: agent.Duration(time.Minute), Idle: agent.Duration(10 * time.Second)},
	}
}

func request() model.Request {
	return model.Request{
		Messages: []agent.Message{{Role: agent.RoleSystem, Text: "You are careful."}, {Role: agent.RoleUser, Text: "Fix the test."}},
		Tools: []agent.ToolSpec{{
			Name: "shell", Description: "Runs a command.",
			Schema: []byte(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
		}},
		MaxOutputTokens: 500,
	}
}

// rig is a model whose endpoint is a handler, connected by pipes: real HTTP, and a synctest bubble can hold it. The bubble
// fails the test when anything is left running.
type rig struct {
	model *openai.Model
	left  chan struct{} // one element for each request that the handler is done with
}

func connect(t *testing.T, cfg model.Config, handler http.Handler) rig {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	r := rig{left: make(chan struct{}, 100)}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() { r.left <- struct{}{} }()
		handler.ServeHTTP(w, req)
	})}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		<-served
	})
	m, err := openai.New(cfg, key, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	r.model = m
	return r
}

// pipes is a listener that connects in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// scenario makes a server of one scenario, named s.
func scenario(t *testing.T, yaml string) *scripted.Server {
	t.Helper()
	s, err := scripted.Parse("s.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

func failure(t *testing.T, err error) *model.Error {
	t.Helper()
	failed, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("got error %v (%T), want a *model.Error", err, err)
	}
	if agent.TypeOf(err) != failed.Type {
		t.Errorf("agent.TypeOf gives %q, the error has %q", agent.TypeOf(err), failed.Type)
	}
	return failed
}
