package promises_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// heap returns the bytes that are in use after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers of the first have set free
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestABodyIsStoredAsItCameAndNeverUnpacked(t *testing.T) {
	t.Parallel()
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		body := testkit.Gzipped(paid("e1"))
		if status, _, err := e.Post(t.Context(), body, map[string]string{"Content-Encoding": "gzip"}); status != http.StatusOK || err != nil {
			t.Fatalf("answered %d, %v", status, err)
		}
		e.WantState("e1", "")
		if got := queryOne[[]byte](e.app, `select body from idem_payloads`); string(got) != body {
			t.Errorf("the payload is stored as %q, want %q", got, body)
		}
	})
}

// A stranger is refused by its headers alone, before its body is sent.
func TestStrangersAreNotAskedForTheirBody(t *testing.T) {
	t.Parallel()
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		conn := e.dial(t)
		if _, err := io.WriteString(conn, request("POST / HTTP/1.1", "token: guess\nExpect: 100-continue\nContent-Length: 100\n", "")); err != nil {
			t.Fatal(err)
		}
		if got := answers(conn); !slices.Equal(got, []int{401}) {
			t.Errorf("answered %v, want 401 and no question for the body", got)
		}
	})
}

func TestABodyIsAskedForWhenAProviderWaitsForThat(t *testing.T) {
	t.Parallel()
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		conn := e.dial(t)
		head, body, _ := strings.Cut(strings.Replace(withLength(paid("e1")), "token: right", "token: right\r\nExpect: 100-continue", 1), "\r\n\r\n")
		if _, err := io.WriteString(conn, head+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		asked := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
		if _, err := io.ReadFull(conn, asked); err != nil || !strings.HasPrefix(string(asked), "HTTP/1.1 100 ") {
			t.Fatalf("answered %q, %v", asked, err)
		}
		if _, err := io.WriteString(conn, body); err != nil {
			t.Fatal(err)
		}
		if got := answers(conn); !slices.Equal(got, []int{200}) {
			t.Errorf("answered %v", got)
		}
		e.WantState("e1", e.stored)
	})
}

func TestAClientThatSaysNoMoreStillGetsItsAnswer(t *testing.T) {
	t.Parallel()
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		for _, c := range []struct {
			request string
			answers []int
			state   idem.State
		}{
			{strings.TrimSuffix(withLength(paid("half")), "}"), []int{503}, ""},
			{withLength(paid("whole")), []int{200}, e.stored},
		} {
			conn := e.dial(t)
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if got := answers(conn); !slices.Equal(got, c.answers) {
				t.Errorf("answered %v, want %v", got, c.answers)
			}
		}
		e.WantState("half", "")
		e.WantState("whole", e.stored)
	})
}

func TestBodyThatDoesNotArriveWholeIsNotHandled(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	observed := make(chan idem.Outcome, 1)
	s.First.Observe = func(_ context.Context, o idem.Observation) { observed <- o.Outcome }
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: shop\r\ntoken: right\r\nContent-Length: 100\r\n\r\n" + paid("e1"))); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if outcome := <-observed; outcome != idem.Retrying {
		t.Errorf("the outcome is %s, want retrying", outcome)
	}
	s.WantState("e1", "")
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
				p := newFirst(nowhere, &notes{})
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
				if took := time.Since(start); err != nil || string(answer) != "HTTP/1.1 503" || took != c.want {
					t.Errorf("answered %q, %v after %s, want 503 after %s", answer, err, took, c.want)
				}
			})
		})
	}
}

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
			s.On(pay)
			e := s.endpoint(s.First, idem.StateDone)
			var slow []*net.TCPConn
			for range 100 {
				conn := e.dial(t)
				if _, err := io.WriteString(conn, c.begun); err != nil {
					t.Fatal(err)
				}
				slow = append(slow, conn)
			}
			e.wantGood(t)
			e.WantState("e1", "")
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
				e.WantState("e1", "")
			} else {
				e.WantState("e1", e.stored)
			}
		})
	}
}

func TestHeadersThatDoNotEndAreGivenUp(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	server := httptest.NewUnstartedServer(s.First)
	server.Config.ReadHeaderTimeout = 50 * time.Millisecond
	server.Start()
	defer server.Close()
	conn := (&endpoint{s, server.Listener.Addr().String(), idem.StateDone}).dial(t)
	if _, err := io.WriteString(conn, strings.TrimSuffix(withLength(paid("e1")), "\r\n\r\n"+paid("e1"))); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), " 200 ") {
		t.Errorf("the server said %q, %v, instead of closing the connection", rest, err)
	}
	s.WantState("e1", "")
}

// A client pays for memory with what it sends, not with what it announces.
func TestAnnouncedBodiesTakeNoMemory(t *testing.T) {
	const clients = 300
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		e.wantGood(t)
		before := heap()
		var open []net.Conn
		for range clients {
			conn := e.dial(t)
			if _, err := io.WriteString(conn, request("POST / HTTP/1.1", "token: right\nExpect: 100-continue\nContent-Length: 1048576\n", "")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))); err != nil {
				t.Fatal(err) // it asks for the body, and so has begun to read it
			}
			open = append(open, conn)
		}
		e.wantGood(t)
		if each := (heap() - before) / clients; each > 32<<10 {
			t.Errorf("each client that sends nothing takes %d KB", each>>10)
		}
		for _, conn := range open {
			conn.Close()
		}
		e.WantState("good", e.stored)
	})
}

// Strangers are refused by their headers: what they send takes no memory, however
// many they are and however much they send.
func TestStrangersTakeLittleMemory(t *testing.T) {
	const strangers, most = 300, 64 << 10 // bytes each, with all that this end of the connection takes
	body := make([]byte, 1<<20)
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		e.wantGood(t)
		head := []byte(request("POST / HTTP/1.1", fmt.Sprintf("Content-Length: %d\n", len(body)), ""))
		refused := 0
		took := allocated(func() {
			for range strangers / 50 {
				var conns []net.Conn
				for range 50 {
					conn := e.dial(t)
					if _, err := conn.Write(head); err != nil {
						t.Fatal(err)
					}
					go func() { _, _ = conn.Write(body) }() // the server may not read it all
					conns = append(conns, conn)
				}
				for _, conn := range conns {
					if got := answers(conn); slices.Equal(got, []int{401}) {
						refused++
					}
					conn.Close()
				}
			}
		})
		if refused != strangers {
			t.Errorf("%d of %d strangers were answered 401", refused, strangers)
		}
		if each := took / strangers; each > most {
			t.Errorf("each stranger took %d KB, want at most %d", each>>10, most>>10)
		}
		e.wantGood(t)
	})
}

func withLength(body string) string {
	return request("POST / HTTP/1.1", fmt.Sprintf("token: right\nContent-Length: %d\n", len(body)), body)
}

// request is an HTTP/1.1 request with a token, after which the server closes
// the connection. The lines after the first are separated with \n.
func request(first, rest, body string) string {
	head := first + "\nHost: shop\nConnection: close\n" + rest
	return strings.ReplaceAll(head, "\n", "\r\n") + "\r\n" + body
}

// answers reads what is answered on a connection until the server closes it.
func answers(conn net.Conn) (statuses []int) {
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses
		}
		statuses = append(statuses, resp.StatusCode)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
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

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func chunked(headers, chunks string) string {
	return request("POST / HTTP/1.1", headers+"Transfer-Encoding: chunked\n", chunks)
}

func byteByByte(body string) string {
	var b strings.Builder
	for i := range len(body) {
		fmt.Fprintf(&b, "1\r\n%c\r\n", body[i])
	}
	return b.String() + "0\r\n\r\n"
}

// eachEndpoint runs a test against inline mode and against the inbox, whose
// workers do not run: what it stores is pending.
func eachEndpoint(t *testing.T, test func(*testing.T, *endpoint)) {
	t.Helper()
	t.Run("works first", func(t *testing.T) {
		s := newApp(t)
		s.On(pay)
		test(t, s.endpoint(s.First, idem.StateDone))
	})
	t.Run("inbox", func(t *testing.T) {
		s := newApp(t)
		s.On(pay)
		s.openInbox()
		test(t, s.endpoint(s.Inbox, idem.StatePending))
	})
}

// endpoint is reached from the internet: a handler behind a server that waits
// long for headers and bodies.
type endpoint struct {
	*app
	addr   string
	stored idem.State // of an event that it has received
}

// dial connects, with a deadline for all that follows.
func (e *endpoint) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// wantGood checks that others' deliveries are received as ever.
func (e *endpoint) wantGood(t *testing.T) {
	t.Helper()
	if status, answer, err := e.Post(t.Context(), paid("good"), nil); status != http.StatusOK || err != nil {
		t.Errorf("a good delivery was answered %d %s, %v", status, answer, err)
	}
	e.WantState("good", e.stored)
}

// wantOnly checks what is stored beside the good delivery: the event e1, a body
// that nobody can read, or nothing.
func (e *endpoint) wantOnly(t *testing.T, genuine, kept bool) {
	t.Helper()
	events, effects := 1, 1
	if genuine {
		events, effects = 2, 2
		e.WantState("e1", e.stored)
	}
	if kept {
		events = 2
	}
	if e.stored == idem.StatePending {
		effects = 0
	}
	if got := queryOne[int](e.app, `select count(*) from idem_events`); got != events {
		t.Errorf("%d events are stored, want %d", got, events)
	}
	e.WantEffects(effects)
}

func (s *app) endpoint(h http.Handler, stored idem.State) *endpoint {
	s.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ReadTimeout = patience
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	s.Cleanup(server.Close)
	s.URL = server.URL
	return &endpoint{s, server.Listener.Addr().String(), stored}
}

// zeros is a reader without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// allocated returns the bytes that f allocates in this process, with those that are free again.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
