package idem_test

import (
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// However many clients send slowly, none of them holds a connection to Postgres
// or keeps a provider's delivery waiting: this pool has one.
func TestSlowClientsBlockNobody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, begun, rest string
		answers          []int
	}{
		{"headers", "POST / HTTP/1.1\r\nHost: shop\r\ntoken: ri", "", nil},
		{"a body", "POST / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\ntoken: right\r\nContent-Length: 38\r\n\r\n{", `"id":"e1","type":"paid","order":"o1"}`, []int{200}},
		{"a chunk", "POST / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\ntoken: right\r\nTransfer-Encoding: chunked\r\n\r\n26\r\n{", `"id":"e1","type":"paid","order":"o1"}` + "\r\n0\r\n\r\n", []int{200}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, poolOf(t, 1))
			s.on(pay)
			e := s.endpoint(s.processor, idem.StateDone)
			var slow []*net.TCPConn
			for range 100 {
				conn := e.dial(t)
				if _, err := io.WriteString(conn, c.begun); err != nil {
					t.Fatal(err)
				}
				slow = append(slow, conn)
			}
			e.wantGood(t)
			e.wantState("e1", "")
			for _, conn := range slow[:3] {
				if _, err := io.WriteString(conn, c.rest); err != nil {
					t.Fatal(err)
				}
				if err := conn.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				if got := answers(conn); c.answers != nil && !slices.Equal(got, c.answers) {
					t.Errorf("answered %v when it was done, want %v", got, c.answers)
				}
			}
			for _, conn := range slow {
				conn.Close()
			}
			if c.answers == nil {
				e.wantState("e1", "")
			} else {
				e.wantState("e1", e.stored)
			}
		})
	}
}

func TestHeadersThatDoNotEndAreGivenUp(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	server := httptest.NewUnstartedServer(s.processor)
	server.Config.ReadHeaderTimeout = 50 * time.Millisecond
	server.Start()
	defer server.Close()
	conn := (&endpoint{s, server.Listener.Addr().String(), idem.StateDone}).dial(t)
	if _, err := io.WriteString(conn, strings.TrimSuffix(withLength(paid("e1")), "\r\n\r\n"+paid("e1"))); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); err != nil || strings.Contains(string(rest), " 200 ") {
		t.Errorf("the server said %q, %v, instead of closing the connection", rest, err)
	}
	s.wantState("e1", "")
}
