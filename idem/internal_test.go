package idem

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Whatever a provider sends, its names fit a text column and its index.
func FuzzNormalizedEventFitsItsColumns(f *testing.F) {
	f.Add("evt_1", "PAYMENT_RECEIVED", "pay_1", []byte("{}"))
	f.Add("\x00", "\xff", strings.Repeat("x", 300), []byte(nil))
	in := newEndpoint(&strangers{})
	f.Fuzz(func(t *testing.T, id, eventType, key string, payload []byte) {
		e, err := in.normalize(Event{ID: id, Type: eventType, Key: key, Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{e.ID, e.Type, e.Key} {
			if !store.Nameable(name) {
				t.Errorf("%q does not fit", name)
			}
		}
		if e.ID == "" || e.Payload == nil || e.Source != "strangers" {
			t.Error("the event has no source, no id or no payload")
		}
		if key != "" && e.Key == "" {
			t.Error("the event has lost its entity, and its place in the order of that")
		}
		again, err := in.normalize(e)
		if err != nil || again.ID != e.ID || again.Type != e.Type || again.Key != e.Key {
			t.Error("normalizing twice changes the event")
		}
	})
}

// JSON has years of four digits, in the zone of whoever writes it: idem list -json in
// UTC, an application in its own.
func TestTheProvidersTimeFitsJSONInEveryZone(t *testing.T) {
	t.Parallel()
	in := newEndpoint(&strangers{})
	brasilia := time.FixedZone("-03", -3*60*60)
	for at, kept := range map[time.Time]bool{
		time.Date(2026, 8, 8, 20, 45, 13, 0, brasilia):               true,
		time.Date(9999, 12, 31, 23, 59, 59, 0, brasilia):             false,
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC):             false,
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC):                 false,
		time.Date(-1, 1, 1, 0, 0, 0, 0, brasilia):                    false,
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC):                     true,
		time.Date(9998, 12, 31, 23, 59, 59, 0, time.UTC):             true,
		time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("", 14*60*60)): false,
	} {
		e, err := in.normalize(Event{ID: "evt_1", Type: "paid", OccurredAt: at})
		if err != nil || e.OccurredAt.IsZero() == kept {
			t.Errorf("%s is normalized to %s, %v", at, e.OccurredAt, err)
		}
		for _, hours := range []int{-12, 0, 14} {
			if text, err := json.Marshal(e.OccurredAt.In(time.FixedZone("", hours*60*60))); err != nil {
				t.Errorf("%s is written as %s, %v", at, text, err)
			}
		}
	}
}

func FuzzErrorTextFitsItsColumn(f *testing.F) {
	f.Add("no such order")
	f.Add("\x00\xff" + strings.Repeat("é", store.MaxError))
	f.Fuzz(func(t *testing.T, message string) {
		text := *errorText(errors.New(message))
		if len(text) > store.MaxError || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("%q does not fit", text)
		}
	})
}

// A source's name is the first part of every row key: with a slash, or empty, its
// events would be another's.
func TestSourceWhoseNameIsNoNamePanics(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{
		"":                       "empty",
		"shop/asaas":             "a slash",
		"/":                      "a slash only",
		"asa\x00as":              "what a text column cannot hold",
		"asa\xffas":              "not UTF-8",
		strings.Repeat("x", 256): "too long for an index",
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, "idem: a source's name is ") {
					t.Errorf("%s: the panic says %q", why, said)
				}
			}()
			NewInbox(nil, named{name: name})
		}()
	}
	newEndpoint(named{name: "asaas-2 (São Paulo)"})
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
	nowhere, err := pgxpool.New(f.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		f.Fatal(err)
	}
	defer nowhere.Close()
	f.Fuzz(func(t *testing.T, request []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			return
		}
		source := &strangers{}
		p := NewInbox(nowhere, source)
		p.MaxBody, p.Logger = 100, nil
		var seen []Observation
		p.Observe = func(_ context.Context, o Observation) { seen = append(seen, o) }
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		want := Refused
		switch w.Code {
		case http.StatusUnauthorized, http.StatusServiceUnavailable:
		case http.StatusMethodNotAllowed:
			want = Rejected
		default:
			t.Fatalf("answered %d", w.Code)
		}
		if len(seen) != 1 || seen[0].Outcome != want || seen[0].Err == nil {
			t.Fatalf("answered %d, observed %+v", w.Code, seen)
		}
		var refusal *Refusal
		if opened := source.opened == 1; opened != (w.Code == http.StatusUnauthorized) || source.opened > 1 || errors.As(seen[0].Err, &refusal) != (want == Refused) {
			t.Errorf("answered %d, opened %d times: %v", w.Code, source.opened, seen[0].Err)
		}
		if n, reasons, _ := p.failures.InARow(); n > 0 {
			t.Errorf("answered %d, which counts as a failed delivery of the provider's: %s", w.Code, reasons)
		}
		if len(source.body) > 100 || r.ContentLength >= 0 && source.opened == 1 && int64(len(source.body)) != r.ContentLength {
			t.Errorf("of a body of %d bytes, %d were verified", r.ContentLength, len(source.body))
		}
	})
}

// The rollback and the cancellation of a first try whose time is up must not have a second each: the event is to be
// stored then, and Asaas waits 10 seconds for all of it.
func TestWhatFollowsAFirstTryLeavesTimeToStoreTheEvent(t *testing.T) {
	t.Parallel()
	const toStore = 2 * time.Second
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), maxAnswerWithin)
		defer cancel()
		end := start.Add(answerTime - toStore)
		for _, step := range []time.Duration{maxAnswerWithin / 2, maxAnswerWithin/2 - 100*time.Millisecond, 200 * time.Millisecond, maxAnswerWithin / 2} {
			<-time.After(step)
			finish, done := pgtx.Finish(ctx)
			got, _ := finish.Deadline()
			if got.After(end) {
				t.Errorf("after %s what follows may last until %s, want %s at the latest", time.Since(start), got.Sub(start), end.Sub(start))
			}
			if time.Since(start) < maxAnswerWithin && time.Until(got) < time.Second {
				t.Errorf("after %s there is no time left to finish", time.Since(start))
			}
			done()
		}
	})
}

// A delivery has an end also where another one asks Postgres, which does not answer.
func TestWhetherWorkersRunIsNotWaitedForBeyondTheEndOfADelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lastWorkers{turn: make(chan struct{}, 1)}
		go l.known(t.Context(), func() (bool, error) { <-time.After(time.Minute); return false, nil })
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if yes := l.known(ctx, func() (bool, error) { return false, nil }); yes || time.Since(start) != time.Second {
			t.Errorf("it is %t after %s, want false after a second", yes, time.Since(start))
		}
		<-time.After(time.Minute)
		if l.known(t.Context(), func() (bool, error) { return true, nil }) {
			t.Error("the answer of the first one is not remembered")
		}
	})
}

func TestServeWaits15SecondsForPartsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := newRunning(t.Context())
		until := make(chan struct{})
		defer close(until)
		for range 2 {
			parts.start(stubborn{until}, func() {})
		}
		start := time.Now()
		err := parts.end()
		if err == nil || strings.Count(err.Error(), "a part of type idem.stubborn has not ended in time") != 2 {
			t.Errorf("end = %v", err)
		}
		if d := time.Since(start); d != 15*time.Second {
			t.Errorf("it took %s, want 15s", d)
		}
	})
}

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
		return Event{}, &Refusal{Source: "strangers", Reason: ReasonCutBody, Hint: err.Error(), Altered: true}
	}
	s.opened++
	s.body = body
	return Event{}, &Refusal{Source: "strangers", Reason: "stranger", Hint: "go away"}
}

// named is a source of which only the name matters.
type named struct {
	*strangers
	name string
}

func (n named) Name() string { return n.name }

// stubborn is a part whose Run does not end with its context.
type stubborn struct{ until chan struct{} }

func (s stubborn) Run(context.Context) error { <-s.until; return nil }

// Senders choose paths where the pattern has a wildcard.
func TestPathsThatStrangersInventAreNotKept(t *testing.T) {
	t.Parallel()
	in := newEndpoint(&strangers{})
	in.Logger = nil
	for n := range 5000 {
		in.refuse(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, fmt.Sprintf("/%d", n), nil), time.Now(), &Refusal{Reason: "wrong_token", WrongSecret: true})
	}
	if n := in.refused.Paths(); n > 1001 {
		t.Errorf("%d paths are kept", n)
	}
	checks := in.Examine(t.Context(), check.Limits{MaxFailures: 5})
	if !strings.Contains(checks[1].Says, "5000 were refused") {
		t.Errorf("%+v", checks)
	}
}
