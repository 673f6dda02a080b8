package idem_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem"
)

func TestBodyThatDoesNotArriveWholeIsNotHandled(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	observed := make(chan idem.Outcome, 1)
	s.processor.Observe = func(_ context.Context, o idem.Observation) { observed <- o.Outcome }
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: shop\r\ntoken: right\r\nContent-Length: 100\r\n\r\n" + paid("e1"))); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if outcome := <-observed; outcome != idem.Rejected {
		t.Errorf("the outcome is %s, want rejected", outcome)
	}
	s.wantState("e1", "")
}

// A body that never ends holds its goroutine for 8 seconds, or for as long as the
// server's own ReadTimeout says.
func TestBodyThatNeverEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why         string
		readTimeout time.Duration
		want        time.Duration
	}{
		{"the server has no limit", 0, 8 * time.Second},
		{"the server has a shorter limit", 100 * time.Millisecond, 100 * time.Millisecond},
		{"the server has a longer limit", time.Minute, time.Minute},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := idem.NewProcessor(nil, &notes{}) // it does not come to the database
				p.Logger = nil
				conns := make(pipes)
				server := &http.Server{Handler: p, ReadTimeout: c.readTimeout}
				go func() { _ = server.Serve(conns) }()
				defer server.Close()
				client, end := net.Pipe()
				defer client.Close()
				conns <- end
				start := time.Now()
				if _, err := client.Write([]byte("POST / HTTP/1.1\r\nHost: shop\r\ntoken: right\r\nContent-Length: 100\r\n\r\n{")); err != nil {
					t.Fatal(err)
				}
				answer := make([]byte, 12)
				_, err := client.Read(answer)
				if took := time.Since(start); err != nil || string(answer) != "HTTP/1.1 408" || took != c.want {
					t.Errorf("answered %q, %v after %s, want 408 after %s", answer, err, took, c.want)
				}
			})
		})
	}
}

// pipes is a listener whose connections are in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }
