//go:build long

package promises_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/testkit"
)

// Whatever arrives, an event is that of a genuine request, once, and all else
// is refused and leaves nothing behind.
func TestHostileRequestsReachNoHandler(t *testing.T) {
	t.Parallel()
	const good = `{"id":"e1","type":"paid","order":"o1"}`
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(good), good)
	keep := strings.Replace(withLength(good), "Connection: close\r\n", "", 1)
	forged := strings.Replace(keep, "token: right", "token: guess", 1)
	const huge = "Content-Length: 104857600\n"
	rows := []struct {
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
		{"gzip", request("POST / HTTP/1.1", fmt.Sprintf("token: right\nContent-Encoding: gzip\nContent-Length: %d\n", len(testkit.Gzipped(good))), testkit.Gzipped(good)), []int{200}, false, true},

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
	}
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		for _, c := range rows {
			t.Run(c.why, func(t *testing.T) {
				e := &endpoint{e.emptied(t), e.addr, e.stored}
				conn := e.dial(t)
				go func() { _, _ = io.WriteString(conn, c.request) }() // the server may not read it all
				if got := answers(conn); !slices.Equal(got, c.answers) {
					t.Errorf("answered %v, want %v", got, c.answers)
				}
				e.wantGood(t)
				e.wantOnly(t, c.genuine, c.kept)
			})
		}
	})
}
