package idem_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// allocated returns the bytes that f allocates in this process, with those that are free again.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// zeros is a reader without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
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
		{"a million keys", fmt.Sprintf("token: right\nContent-Length: %d\n", len(keys)), text(keys), []int{413}, 2},
		{"100 MB, as announced", fmt.Sprintf("token: right\nContent-Length: %d\n", size), endless, []int{413}, 2},
		{"100 MB in chunks", "token: right\nTransfer-Encoding: chunked\n", chunk, []int{413}, 12},
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
