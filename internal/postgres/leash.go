package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// patience is the time that a child process has to end before it is killed.
const patience = 15 * time.Second

// leash holds a child process that ends by itself when its stdin ends. The
// other end of that pipe is here and nowhere else: the child goes when this
// process goes, whichever way it goes.
type leash struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout chan string // its lines; closed when the child is gone
	stderr *tail
}

func newLeash(cmd *exec.Cmd) (*leash, error) {
	l := &leash{cmd: cmd, stdout: make(chan string, 1), stderr: new(tail)}
	cmd.Stderr = l.stderr
	cmd.WaitDelay = patience
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if l.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go l.follow(stdout)
	return l, nil
}

func (l *leash) follow(stdout io.Reader) {
	defer close(l.stdout)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		l.stdout <- lines.Text()
	}
	l.cmd.Wait() // the error is in stderr
}

// send gives the child an order.
func (l *leash) send(order string) error {
	_, err := fmt.Fprintln(l.stdin, order)
	return err
}

// expect waits for the child to write a line. Another line, or its end, is an
// error that says what it wrote to stderr.
func (l *leash) expect(ctx context.Context, line string) error {
	select {
	case got := <-l.stdout:
		if got != line {
			return errors.New(l.stderr.String())
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the child and waits until it is gone.
func (l *leash) close() error {
	l.stdin.Close()
	kill := time.AfterFunc(patience, func() { killGroup(l.cmd.Process) })
	for range l.stdout {
	}
	if !kill.Stop() {
		return fmt.Errorf("%s had to be killed", l.cmd.Path)
	}
	return nil
}

// tail keeps the end of the text that is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-2000):]
	return len(p), nil
}

// String returns the kept text, in one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.end)), " ")
}
