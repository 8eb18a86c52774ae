package testserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// Server is a Temporal dev server on a free port, with its database in a folder of the caller's.
type Server struct {
	*Process
	Address string
	dir     string
	port    int
	args    []string
}

// answersWithin is how long a dev server may take to answer on a busy machine.
const answersWithin = 90 * time.Second

// Start starts a dev server with the settings of deploy/dev/server.args whose database is in dir. args are more arguments
// for "temporal server start-dev", such as --namespace.
func Start(ctx context.Context, dir string, args ...string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, port: port, Address: fmt.Sprintf("127.0.0.1:%d", port), args: args}
	return s, s.Restart(ctx)
}

// Restart starts the server over the same database, after a Kill.
func (s *Server) Restart(ctx context.Context) error {
	temporal, err := CLI()
	if err != nil {
		return err
	}
	settings, err := settings()
	if err != nil {
		return err
	}
	args := append([]string{
		"server", "start-dev", "--headless", "--port", fmt.Sprint(s.port),
		"--db-filename", filepath.Join(s.dir, "temporal.db"), "--log-level", "error",
	}, append(settings, s.args...)...)
	if s.Process, err = startProcess(temporal, args, nil, filepath.Join(s.dir, "server.log")); err != nil {
		return err
	}
	return s.answers(ctx)
}

// Dial connects to the server, for its default namespace.
func (s *Server) Dial() (client.Client, error) { return s.DialNamespace(client.DefaultNamespace) }

// DialNamespace connects to the server, for one of its namespaces.
func (s *Server) DialNamespace(name string) (client.Client, error) {
	return client.Dial(client.Options{
		HostPort: s.Address, Namespace: name, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
}

// Environment is what a program needs to find the server and a namespace of it: this process's environment, without what
// points elsewhere.
func (s *Server) Environment(namespace string) []string {
	return append(clean(os.Environ()), "TEMPORAL_ADDRESS="+s.Address, "TEMPORAL_NAMESPACE="+namespace)
}

// answers waits until the server takes requests for its namespace.
func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	for {
		c, err := s.Dial()
		if err == nil {
			_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
			c.Close()
		}
		if err == nil {
			return nil
		}
		select {
		case <-s.Done():
			return fmt.Errorf("the dev server ended: %w\n%s", s.Err(), s.Log())
		case <-ctx.Done():
			return fmt.Errorf("the dev server does not answer: %w\n%s", err, s.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// CLI finds the Temporal CLI: on the path, else the one that deploy/dev/setup built.
func CLI() (string, error) {
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".belay", "bin", "temporal")
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("there is no Temporal CLI; run deploy/dev/setup, or make test, which does")
	}
	return path, nil
}

// Root is the repository's folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(b, []byte("module belay\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside of the repository")
		}
		dir = filepath.Dir(dir)
	}
}

func settings() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(root, "deploy", "dev", "server.args"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var args []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if flag, value, ok := strings.Cut(lines.Text(), " "); ok && strings.HasPrefix(flag, "--") {
			args = append(args, flag, value)
		}
	}
	return args, lines.Err()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
