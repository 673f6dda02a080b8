package promises_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func TestFailedDeliveriesAreNamedByTheirReasons(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		deliver func(s *app)
		reason  string
		hint    string
	}{
		"a handler": {func(s *app) { s.WantAnswer(paid("e1"), 503) }, "handler_failed 5", ""},
		"a table that is missing": {func(s *app) {
			s.Exec(`alter table if exists idem_payloads rename to gone`)
			s.WantAnswer(newBody, 503)
		}, "not_stored 5", ""},
		"empty":     {func(s *app) { s.WantAnswer("", 503) }, "empty_body 5", "the last: the body is empty: something in front of the receiver has read it"},
		"too large": {func(s *app) { s.WantAnswer(paid(strings.Repeat("e", 300)), 413) }, "body_too_large 5", "the last: the body is larger than 200 bytes"},
		"cut off": {func(s *app) {
			conn := (&endpoint{s, strings.TrimPrefix(s.URL, "http://"), idem.StateDone}).dial(s.TB)
			if _, err := io.WriteString(conn, strings.TrimSuffix(withLength(paid("e1")), "}")); err != nil || conn.CloseWrite() != nil {
				s.Fatal(err)
			}
			if got := answers(conn); !slices.Equal(got, []int{503}) {
				s.Errorf("answered %v", got)
			}
		}, "body_not_whole 5", "the last: the body did not arrive whole"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("a mistake") })
			s.First.MaxBody = 200
			for range 4 {
				c.deliver(s)
			}
			for _, check := range s.NewHealth(s.First).Report().Checks {
				if check.Name == "deliveries" && (!check.Healthy || !strings.HasPrefix(check.Says, "4 deliveries have failed in a row: ")) {
					t.Errorf("after four it says %+v", check)
				}
			}
			c.deliver(s)
			red := "deliveries"
			if why == "a table that is missing" {
				red = "deliveries, postgres"
			}
			for _, check := range s.NewHealth(s.First).Report().Checks {
				if check.Name == "deliveries" && (check.Healthy || !strings.Contains(check.Says, c.reason) || !strings.Contains(check.Remedy, c.hint)) {
					t.Errorf("it says %+v, want %q and %q", check, c.reason, c.hint)
				}
				if !check.Healthy && !strings.Contains(red, check.Name) {
					t.Errorf("it says %+v", check)
				}
			}
			for range 20 {
				if status, _, err := s.Post(t.Context(), "", map[string]string{"token": "wrong"}); status != 401 || err != nil {
					t.Fatal(status, err)
				}
			}
			for _, check := range s.NewHealth(s.First).Report().Checks {
				if check.Name == "deliveries" && !strings.HasPrefix(check.Says, "5 deliveries") {
					t.Errorf("strangers count: %+v", check)
				}
			}
		})
	}
}

// Wherever the connection ends, what has arrived may look like a whole event, and is none.
func TestTruncatedBodyIsAskedForAgainWhereverItEnds(t *testing.T) {
	t.Parallel()
	eachEndpoint(t, func(t *testing.T, e *endpoint) {
		body := paid("e1") + "   "
		chunk := fmt.Sprintf("%x\r\n%s", len(body), body)
		for _, request := range []string{
			strings.TrimSuffix(withLength(body), " "), // a whole event, by its bytes
			withLength(body)[:len(withLength(body))-len(body)],
			withLength(body)[:len(withLength(body))-len(body)/2],
			chunked("token: right\n", chunk+"\r\n"), // without the last chunk
			chunked("token: right\n", chunk[:len(chunk)-5]),
			chunked("token: right\n", chunk+"\r\n0\r\n")[:len(chunked("token: right\n", chunk+"\r\n0\r\n"))-2],
		} {
			conn := e.dial(t)
			if _, err := io.WriteString(conn, request); err != nil || conn.CloseWrite() != nil {
				t.Fatal(err)
			}
			if got := answers(conn); !slices.Equal(got, []int{503}) {
				t.Errorf("%q: answered %v", request, got)
			}
		}
		if n := queryOne[int](e.app, `select count(*) from idem_events`); n != 0 {
			t.Errorf("%d events are stored", n)
		}
	})
}

// An application's own queue delivers what the provider's Identify makes of a body.
func TestAcceptTakesNoEmptyBodyAndParksEachUnreadableOne(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Notes.Ignore("")
	for name, accept := range map[string]func(context.Context, idem.Event) (idem.Outcome, error){"works first": s.First.Accept, "inbox": s.Inbox.Accept} {
		for _, body := range []string{"", " \n"} {
			if outcome, err := accept(t.Context(), identify([]byte(body))); outcome != idem.Retrying || err == nil {
				t.Errorf("%s: %q is %s, %v", name, body, outcome, err)
			}
		}
		for range 2 {
			if outcome, err := accept(t.Context(), identify([]byte(`null`))); outcome != idem.Parked && outcome != idem.Pending || err != nil {
				t.Errorf("%s: null is %s, %v", name, outcome, err)
			}
		}
	}
	if err := s.Inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	const parked = `select count(*) from idem_events where state = 'parked' and type = '` + idem.UnreadableType + `'`
	if n := queryOne[int](s, parked); n != 4 {
		t.Errorf("%d events are parked, want 4", n)
	}
	if sum, err := s.First.Replay(t.Context(), idem.Filter{}); sum.Failed != 4 || err != nil {
		t.Errorf("Replay = %+v, %v", sum, err)
	}
	if n := queryOne[int](s, parked); n != 4 {
		t.Errorf("%d events are parked after a replay, want 4", n)
	}
}
