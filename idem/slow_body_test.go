package idem_test

import (
	"context"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
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

func TestTheServersOwnReadTimeoutCounts(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	server := httptest.NewUnstartedServer(s.processor)
	server.Config.ReadTimeout = 100 * time.Millisecond
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: shop\r\ntoken: right\r\nContent-Length: 100\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	answer := make([]byte, 12)
	if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 408" || time.Since(start) > s.processor.Timeout/2 {
		t.Errorf("answered %q, %v after %s, want 408 at once", answer, err, time.Since(start))
	}
}

func TestBodyThatNeverEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	s.processor.Timeout = 100 * time.Millisecond
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: shop\r\ntoken: right\r\nContent-Length: 100\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 12)
	if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 408" {
		t.Errorf("answered %q, %v, want 408", answer, err)
	}
}
