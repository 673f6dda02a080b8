//go:build long && !race

package promises_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/testkit"
)

// They do not run in parallel: others would use memory meanwhile.
func TestHostileBodiesTakeLittleMemory(t *testing.T) {
	const size = 100 << 20
	bomb := testkit.Gzipped(strings.Repeat("\x00", size)) // 100 KB of it
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
				e.WantEffects(queryOne[int](e.app, `select count(*) from idem_events where state = 'done'`))
			})
		})
	}
}
