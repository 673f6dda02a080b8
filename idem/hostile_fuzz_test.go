package idem

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// strangers is a source that nobody can prove anything to.
type strangers struct {
	Routes
	opened int
	body   []byte
}

func (*strangers) Name() string { return "strangers" }

func (s *strangers) Open(r *http.Request) (Event, error) {
	body, err := ReadBody(r)
	if err != nil {
		return Event{}, err
	}
	s.opened++
	s.body = body
	return Event{}, &Refusal{Source: "strangers", Reason: "stranger", Hint: "go away"}
}

// Whatever a server reads as a request is answered, and verified at most once,
// with its whole body. There is no database here to reach.
func FuzzRequestOfAStrangerIsRefused(f *testing.F) {
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: token\r\n\r\n2\r\n{}\r\n0\r\ntoken: x\r\n\r\n",
		"POST / HTTP/1.0\r\nIdem-Dry-Run: 1\r\nContent-Length: 9\r\n\r\n{}",
		"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300\r\n\r\n" + strings.Repeat("x", 300),
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			return
		}
		source := &strangers{}
		p := NewProcessor(nil, source)
		p.MaxBody, p.Logger = 100, nil
		var seen []Observation
		p.Observe = func(_ context.Context, o Observation) { seen = append(seen, o) }
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		want := Rejected
		switch w.Code {
		case http.StatusUnauthorized:
			want = Refused
		case http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		default:
			t.Fatalf("answered %d", w.Code)
		}
		if len(seen) != 1 || seen[0].Outcome != want || seen[0].Err == nil {
			t.Fatalf("answered %d, observed %+v", w.Code, seen)
		}
		var refusal *Refusal
		if opened := source.opened == 1; opened != (want == Refused) || opened != errors.As(seen[0].Err, &refusal) || source.opened > 1 {
			t.Errorf("answered %d, opened %d times: %v", w.Code, source.opened, seen[0].Err)
		}
		if len(source.body) > 100 || r.ContentLength >= 0 && source.opened == 1 && int64(len(source.body)) != r.ContentLength {
			t.Errorf("of a body of %d bytes, %d were verified", r.ContentLength, len(source.body))
		}
	})
}
