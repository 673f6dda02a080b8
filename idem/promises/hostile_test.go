package promises_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
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
)

// heap returns the bytes that are in use after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers of the first have set free
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Whatever arrives, an event is that of a genuine request, once, and all else
// is refused and leaves nothing behind.
func TestHostileRequestsReachNoHandler(t *testing.T) {
	t.Parallel()
	const good = `{"id":"e1","type":"paid","order":"o1"}`
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(good), good)
	keep := strings.Replace(withLength(good), "Connection: close\r\n", "", 1)
	forged := strings.Replace(keep, "token: right", "token: guess", 1)
	const huge = "Content-Length: 104857600\n"
	for _, c := range []struct {
		why, request string
		answers      []int
		genuine      bool // it delivers e1
		kept         bool // it is genuine, but unreadable
	}{
		{"a good one", withLength(good), []int{200}, true, false},
		{"HTTP/1.0", strings.Replace(withLength(good), "HTTP/1.1", "HTTP/1.0", 1), []int{200}, true, false},
		{"chunked", chunked("token: right\n", chunk+"0\r\n\r\n"), []int{200}, true, false},
		{"chunked byte by byte", chunked("token: right\n", byteByByte(good)), []int{200}, true, false},
		{"pipelined twice", keep + withLength(good), []int{200, 200}, true, false},
		{"pipelined behind a forged one", forged + withLength(good), []int{401, 200}, true, false},
		{"longer than its length", keep + "GARBAGE\r\n\r\n", []int{200, 400}, true, false},

		{"no length, but a body", request("POST / HTTP/1.1", "token: right\n", good), []int{503}, false, false},
		{"gzip", request("POST / HTTP/1.1", fmt.Sprintf("token: right\nContent-Encoding: gzip\nContent-Length: %d\n", len(gzipped(good))), gzipped(good)), []int{200}, false, true},

		{"gzip as a transfer encoding", request("POST / HTTP/1.1", "token: right\nTransfer-Encoding: gzip, chunked\n", chunk+"0\r\n\r\n"), []int{501}, false, false},
		{"a forged token", strings.Replace(withLength(good), "token: right", "token: guess", 1), []int{401}, false, false},
		{"the token after the body", chunked("Trailer: token\n", chunk+"0\r\ntoken: right\r\n\r\n"), []int{401}, false, false},
		{"the token in the URL", strings.Replace(strings.Replace(withLength(good), "token: right\r\n", "", 1), "POST /", "POST /?token=right", 1), []int{401}, false, false},
		{"two lengths", request("POST / HTTP/1.1", "token: right\nContent-Length: 38\nContent-Length: 3\n", good), []int{400}, false, false},
		{"a length with a sign", request("POST / HTTP/1.1", "token: right\nContent-Length: +38\n", good), []int{400}, false, false},
		{"a negative length", request("POST / HTTP/1.1", "token: right\nContent-Length: -1\n", good), []int{400}, false, false},
		{"a length beyond everything", request("POST / HTTP/1.1", "token: right\nContent-Length: 99999999999999999999\n", good), []int{400}, false, false},
		{"a chunk of no size", chunked("token: right\n", "zz\r\n"+good+"\r\n0\r\n\r\n"), []int{503}, false, false},
		{"a chunk beyond everything", chunked("token: right\n", "fffffffffffffffff\r\n"+good+"\r\n0\r\n\r\n"), []int{503}, false, false},
		{"chunks that are mostly not data", chunked("token: right\n", strings.Repeat("1;"+strings.Repeat("x", 2000)+"\r\na\r\n", 500)+"0\r\n\r\n"), []int{503}, false, false},
		{"a trailer without end", chunked("token: right\n", chunk+"0\r\nx: "+strings.Repeat("x", 1<<20)+"\r\n\r\n"), []int{503}, false, false},
		{"2 MB of header", request("POST / HTTP/1.1", "token: right\nx: "+strings.Repeat("x", 2<<20)+"\n"+"Content-Length: 38\n", good), []int{431}, false, false},
		{"20,000 headers", request("POST / HTTP/1.1", strings.Repeat("x: y\n", 20_000)+"token: guess\nContent-Length: 38\n", good), []int{401}, false, false},
		{"a header name with a space", request("POST / HTTP/1.1", "token : right\nContent-Length: 38\n", good), []int{400}, false, false},
		{"a NUL in a header", request("POST / HTTP/1.1", "token: right\nx: \x00\nContent-Length: 38\n", good), []int{400}, false, false},
		{"no host", strings.Replace(withLength(good), "Host: shop\r\n", "", 1), []int{400}, false, false},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{405}, false, false},
		{"HTTP of the future", strings.Replace(withLength(good), "HTTP/1.1", "HTTP/3.7", 1), []int{505}, false, false},
		{"no HTTP", strings.Repeat("\x16\x03\x01", 100) + "\r\n\r\n", []int{400}, false, false},
		{"an unknown expectation", strings.Replace(withLength(good), "token: right", "token: right\r\nExpect: a-miracle", 1), []int{417}, false, false},
		{"100 MB to come", request("POST / HTTP/1.1", "token: right\n"+huge, ""), []int{413}, false, false},
		{"100 MB to come, when asked for", request("POST / HTTP/1.1", "token: right\nExpect: 100-continue\n"+huge, ""), []int{413}, false, false},
		{"GET", request("GET / HTTP/1.1", "token: right\n"+huge, ""), []int{405}, false, false},
		{"HEAD", request("HEAD / HTTP/1.1", "token: right\n", ""), []int{405}, false, false},
		{"PUT", strings.Replace(withLength(good), "POST", "PUT", 1), []int{405}, false, false},
		{"post", strings.Replace(withLength(good), "POST", "post", 1), []int{405}, false, false},
		{"CONNECT", request("CONNECT shop:443 HTTP/1.1", "token: right\n", ""), []int{405}, false, false},
		{"another method in a header", strings.Replace(withLength(good), "POST / HTTP/1.1", "GET / HTTP/1.1\r\nX-HTTP-Method-Override: POST", 1), []int{405}, false, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			eachEndpoint(t, func(t *testing.T, e *endpoint) {
				conn := e.dial(t)
				go func() { _, _ = io.WriteString(conn, c.request) }() // the server may not read it all
				if got := answers(conn); !slices.Equal(got, c.answers) {
					t.Errorf("answered %v, want %v", got, c.answers)
				}
				e.wantGood(t)
				e.wantOnly(t, c.genuine, c.kept)
			})
		})
	}
}

func TestABodyIsStoredAsItCameAndNeverUnpacked(t *testing.T) {
	t.Parallel()
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		body := gzipped(paid("e1"))
		if status, _, err := e.post(t.Context(), body, map[string]string{"Content-Encoding": "gzip"}); status != http.StatusOK || err != nil {
			t.Fatalf("answered %d, %v", status, err)
		}
		e.wantState("e1", "")
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
		e.wantState("e1", e.stored)
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
		e.wantState("half", "")
		e.wantState("whole", e.stored)
	})
}

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
	if outcome := <-observed; outcome != idem.Retrying {
		t.Errorf("the outcome is %s, want retrying", outcome)
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
	if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), " 200 ") {
		t.Errorf("the server said %q, %v, instead of closing the connection", rest, err)
	}
	s.wantState("e1", "")
}

// They do not run in parallel: others would use memory meanwhile.
func TestHostileBodiesTakeLittleMemory(t *testing.T) {
	const size = 100 << 20
	bomb := gzipped(strings.Repeat("\x00", size)) // 100 KB of it
	keys := "{" + strings.Repeat(`"key":0,`, 1_000_000) + `"key":0}`
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	text := func(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }
	endless := func() io.Reader { return io.LimitReader(zeros{}, size) }
	chunk := func() io.Reader { return io.MultiReader(strings.NewReader(fmt.Sprintf("%x\r\n", size)), endless()) }
	for _, c := range []struct {
		why     string
		head    string
		body    func() io.Reader
		answers []int
		atMost  uint64 // MB
	}{
		{"a million keys", fmt.Sprintf("token: right\nContent-Length: %d\n", len(keys)), text(keys), []int{200}, 50},
		{"100 MB, as announced", fmt.Sprintf("token: right\nContent-Length: %d\n", size), endless, []int{413}, 2},
		{"100 MB in chunks", "token: right\nTransfer-Encoding: chunked\n", chunk, []int{413}, 40},
		{"100 MB of a stranger", "token: guess\nTransfer-Encoding: chunked\n", chunk, []int{401}, 2},
		{"100 MB when unpacked", fmt.Sprintf("token: right\nContent-Encoding: gzip\nContent-Length: %d\n", len(bomb)), text(bomb), []int{200}, 4},
		{"10,000 levels", fmt.Sprintf("token: right\nContent-Length: %d\n", len(deep)), text(deep), []int{200}, 2},
	} {
		t.Run(c.why, func(t *testing.T) {
			eachEndpoint(t, func(t *testing.T, e *endpoint) {
				e.wantGood(t) // statements are prepared, buffers are there
				conn := e.dial(t)
				var got []int
				took := allocated(func() {
					go func() {
						_, _ = io.WriteString(conn, request("POST / HTTP/1.1", c.head, ""))
						_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{c.body()}, make([]byte, 64<<10))
					}()
					got = answers(conn)
				})
				if !slices.Equal(got, c.answers) {
					t.Errorf("answered %v, want %v", got, c.answers)
				}
				if took > c.atMost<<20 {
					t.Errorf("%d KB were allocated, want at most %d MB", took>>10, c.atMost)
				}
				e.wantEffects(queryOne[int](e.app, `select count(*) from idem_events where state = 'done'`))
			})
		})
	}
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
		e.wantState("good", e.stored)
	})
}

// Strangers are refused by their headers: what they send takes no memory, however
// many they are and however much they send.
func TestStrangersTakeLittleMemory(t *testing.T) {
	const strangers, most = 800, 64 << 10 // bytes each, with all that this end of the connection takes
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

func gzipped(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	return b.String()
}

// eachEndpoint runs a test against inline mode and against the inbox, whose
// workers do not run: what it stores is pending.
func eachEndpoint(t *testing.T, test func(*testing.T, *endpoint)) {
	t.Helper()
	t.Run("processor", func(t *testing.T) {
		s := newApp(t)
		s.on(pay)
		test(t, s.endpoint(s.processor, idem.StateDone))
	})
	t.Run("inbox", func(t *testing.T) {
		s := newApp(t)
		s.on(pay)
		s.openInbox()
		test(t, s.endpoint(s.inbox, idem.StatePending))
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
	if status, answer, err := e.post(t.Context(), paid("good"), nil); status != http.StatusOK || err != nil {
		t.Errorf("a good delivery was answered %d %s, %v", status, answer, err)
	}
	e.wantState("good", e.stored)
}

// wantOnly checks what is stored beside the good delivery: the event e1, a body
// that nobody can read, or nothing.
func (e *endpoint) wantOnly(t *testing.T, genuine, kept bool) {
	t.Helper()
	events, effects := 1, 1
	if genuine {
		events, effects = 2, 2
		e.wantState("e1", e.stored)
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
	e.wantEffects(effects)
}

func (s *app) endpoint(h http.Handler, stored idem.State) *endpoint {
	s.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ReadTimeout = patience
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	s.Cleanup(server.Close)
	s.url = server.URL
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
