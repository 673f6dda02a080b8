package idem_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// receiver is a server in a process of its own, which can be killed.
type receiver struct {
	*testing.T
	url string // of the database

	mu      sync.Mutex
	address string
	process *exec.Cmd
}

func (r *receiver) start() {
	child := exec.Command(os.Args[0], "-test.run=^TestChildThatReceives$")
	child.Env = append(os.Environ(), "IDEM_TEST_RECEIVER="+r.url)
	address, err := startChild(child)
	if err != nil {
		r.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address, r.process = address, child
}

// startChild starts a process and returns the first line that it prints.
func startChild(child *exec.Cmd) (line string, err error) {
	if _, err := child.StdinPipe(); err != nil { // ours until the child is waited for, or we end
		return "", err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", err
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		return "", err
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), err
}

// endWithParent ends a child's process once its parent's end of the pipe is
// closed, however the parent ends.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func (r *receiver) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.process.Process.Kill(); err != nil {
		r.Error(err)
	}
	_ = r.process.Wait() // killed
}

func (r *receiver) deliverUntilAcknowledged(body string) {
	for {
		r.mu.Lock()
		address := r.address
		r.mu.Unlock()
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			r.Error(err)
			return
		}
		req.Header.Set("token", "right")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if r.Context().Err() != nil {
			return
		}
		pause()
	}
}

// TestChildThatReceives is the process of a receiver.
func TestChildThatReceives(t *testing.T) {
	url := os.Getenv("IDEM_TEST_RECEIVER")
	if url == "" {
		return
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", pay)
	processor := idem.NewProcessor(pool, source)
	processor.Logger = nil
	server := httptest.NewServer(processor)
	fmt.Println(server.URL)
	endWithParent()
}

// TestChildThatHandlesForever is the process that is killed.
func TestChildThatHandlesForever(t *testing.T) {
	url := os.Getenv("IDEM_TEST_CHILD")
	if url == "" {
		return
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		fmt.Println("in the handler")
		endWithParent()
		return nil
	})
	_, err = idem.NewProcessor(pool, source).Accept(t.Context(), identify([]byte(paid("e1"))))
	t.Fatal("the handler returned: ", err)
}
