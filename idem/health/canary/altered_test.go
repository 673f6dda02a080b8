package canary_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/testkit"
)

// altering is something in front of a receiver that passes another body on.
func altering(alter func(body string) string, next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		altered := []byte(alter(string(body)))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(altered)), int64(len(altered))
		next.ServeHTTP(w, r)
	}
}

func TestCanarySaysThatItsBodyWasAltered(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.OpenInbox()
	drained := "its body arrived empty: something in front of the receiver has read it"
	changed := "another body arrived than was sent: something in front of the receiver has changed, encoded or wrapped it"
	for name, receiver := range map[string]http.Handler{"works first": s.First, "inbox": s.Inbox} {
		for _, c := range []struct {
			why   string
			alter func(string) string
			want  string // "" for a canary that is well
		}{
			{"a logger", func(string) string { return "" }, drained},
			{"a line break", func(string) string { return "\n" }, drained},
			{"a compressor", testkit.Gzipped, changed},
			{"an array", func(b string) string { return "[" + b + "]" }, changed},
			{"an envelope", func(b string) string { return `{"data":` + b + `}` }, changed},
			{"an envelope with a name", func(b string) string { return `{"type":"webhook","data":` + b + `}` }, changed},
			{"a page", func(string) string { return "<html></html>" }, changed},
			{"half of it", func(b string) string { return b[:len(b)/2] }, changed},
			{"too much", func(b string) string { return b + strings.Repeat(" ", 20<<20) }, "arrived larger than MaxBody"},
			{"nothing", func(b string) string { return b }, ""},
			{"white space, which changes nothing", func(b string) string { return b + "\n" }, ""},
		} {
			err := newCanary(answering(t, altering(c.alter, receiver)), "right").Send(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %s: %v, want %q", name, c.why, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "version") {
				t.Errorf("%s, %s: a version is blamed: %v", name, c.why, err)
			}
		}
	}
	s.WantContents([]string{})
}
