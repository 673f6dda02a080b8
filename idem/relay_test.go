package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
)

const (
	secret = "0123456789abcdef0123456789abcdef"
	other  = "fedcba9876543210fedcba9876543210"
)

// publisherFunc publishes with a function.
type publisherFunc func(ctx context.Context, m broker.Message) error

func (f publisherFunc) Publish(ctx context.Context, m broker.Message) error { return f(ctx, m) }

// newRelayApp is an inbox app whose deliveries go to a relay with this publisher.
func newRelayApp(t *testing.T, p broker.Publisher) (*app, *idem.Relay) {
	t.Helper()
	s := newInboxApp(t)
	s.on(pay)
	r := idem.NewRelay(s.notes, p, secret)
	r.Observe, r.Logger = s.observe, s.logger()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s, r
}

func TestRelayedEventIsTheDeliveredOne(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	status, answer, err := s.post(t.Context(), paid("e1"), map[string]string{"account": "branch"})
	if err != nil || status != http.StatusOK {
		t.Fatalf("answered %d %s, %v, want 200", status, answer, err)
	}
	s.wantState("e1", "")
	if len(b.published) != 1 {
		t.Fatalf("%d messages are published, want 1", len(b.published))
	}
	m := b.published[0]
	if diff := cmp.Diff(broker.Message{Source: "notes", ID: "branch/e1", Type: "paid", Key: "branch/o1"}, m, ignoreBody); diff != "" {
		t.Error("the message (-want +got):\n" + diff)
	}
	take := idem.Relayed(s.inbox, secret)
	for range 2 { // brokers deliver twice
		if err := take(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	s.drain(1)
	s.wantEffects(1)
	if got := queryOne[string](s, `select event || ' ' || scope from effects`); got != "e1 branch" {
		t.Errorf("the effect is of %q, want event e1 of account branch", got)
	}
	if diff := cmp.Diff([]idem.Outcome{idem.Published, idem.Pending, idem.Duplicate, idem.Done}, s.outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

var ignoreBody = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Body" }, cmp.Ignore())

func TestRelayAnswersForItsBroker(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for _, c := range []struct {
		reason  string
		publish publisherFunc
		status  int
		says    string
	}{
		{"confirmed", func(context.Context, broker.Message) error { return nil }, 200, ""},
		{"the provider must deliver it again", func(context.Context, broker.Message) error { return errors.New("no route") }, 503, "no route"},
		{"user code never takes the process down", func(context.Context, broker.Message) error { panic("oops") }, 503, "oops"},
		{"nor keeps the provider waiting", func(context.Context, broker.Message) error { runtime.Goexit(); return nil }, 503, "ended its goroutine"},
		{"a hanging broker must not mean silence", func(ctx context.Context, _ broker.Message) error { <-ctx.Done(); return ctx.Err() }, 503, "deadline"},
		{"nor one that ignores its context", func(context.Context, broker.Message) error { <-hang; return nil }, 503, "no answer in time"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s, r := newRelayApp(t, c.publish)
			r.Timeout = 20 * time.Millisecond
			if c.status == http.StatusOK {
				r.Timeout = patience
			}
			s.wantAnswer(paid("e1"), c.status)
			if !strings.Contains(s.logged(), c.says) {
				t.Errorf("the log does not say %q:\n%s", c.says, s.logged())
			}
		})
	}
}

func TestRelayWithAFallbackNeedsOneOfTwo(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for _, c := range []struct {
		reason   string
		timeout  time.Duration
		fallback func(context.Context, idem.Event) (idem.Outcome, error)
		status   int
	}{
		{"the inbox has it", patience, nil, 200},
		{"it hangs, too", 20 * time.Millisecond, func(context.Context, idem.Event) (idem.Outcome, error) { <-hang; return idem.Pending, nil }, 503},
		{"user code never takes the process down", patience, func(context.Context, idem.Event) (idem.Outcome, error) { panic("oops") }, 503},
		{"it has not taken it", patience, func(context.Context, idem.Event) (idem.Outcome, error) { return idem.Retrying, nil }, 503},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s, r := newRelayApp(t, publisherFunc(func(context.Context, broker.Message) error { return errors.New("broker is unavailable") }))
			r.Timeout, r.Fallback = c.timeout, c.fallback
			if r.Fallback == nil {
				r.Fallback = s.inbox.Accept
			}
			s.wantAnswer(paid("e1"), c.status)
			if c.status == http.StatusOK {
				s.drain(1)
				s.wantEffects(1)
			}
		})
	}
}

func TestRelayPublishesOnlyWhatIsGenuineAndWanted(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	s.notes.Ignore("noise")
	for _, c := range []struct {
		reason, token, body string
		status              int
	}{
		{"not genuine", "wrong", paid("e1"), 401},
		{"ignored by the application", "right", `{"id":"e2","type":"noise"}`, 200},
	} {
		if status, _, err := s.post(t.Context(), c.body, map[string]string{"token": c.token}); status != c.status || err != nil {
			t.Errorf("%s: answered %d, %v, want %d", c.reason, status, err, c.status)
		}
	}
	if len(b.published) != 0 {
		t.Errorf("published %v", b.published)
	}
}

func TestMessageThatNoRelaySignedReachesNoHandler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		body   func(genuine []byte) []byte
	}{
		{"not a relay's", func([]byte) []byte { return []byte(paid("e1")) }},
		{"empty", func([]byte) []byte { return nil }},
		{"signed with another secret", func(g []byte) []byte { return bytes.Replace(g, []byte("relay-1 "), []byte("relay-1 00"), 1) }},
		{"no signature", func(g []byte) []byte {
			_, rest, _ := bytes.Cut(g, []byte("\n"))
			return append([]byte("paghooks-relay-1 \n"), rest...)
		}},
		{"another amount", func(g []byte) []byte { return bytes.Replace(g, []byte(`"o1"`), []byte(`"o2"`), 1) }},
		{"another account", func(g []byte) []byte {
			return bytes.Replace(g, []byte(`"source":"notes",`), []byte(`"source":"notes","scope":"x",`), 1)
		}},
		{"cut off", func(g []byte) []byte { return g[:len(g)-1] }},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			b := &fakeBroker{}
			s, _ := newRelayApp(t, b)
			s.wantAnswer(paid("e1"), http.StatusOK)
			take := idem.Relayed(s.inbox, secret)
			body := c.body(bytes.Clone(b.published[0].Body))
			for range 2 {
				if err := take(t.Context(), broker.Message{Body: body}); err != nil {
					t.Fatalf("the message would block its queue: %v", err)
				}
			}
			if n, err := s.inbox.Replay(t.Context(), idem.Filter{}); n.Done != 0 || err != nil {
				t.Fatalf("Replay = %+v, %v, want nothing done", n, err)
			}
			s.drain(0)
			s.wantEffects(0)
			s.wantStates(map[idem.State]int{idem.StateUnhandled: 1})
		})
	}
}

func TestMessageOfAWrongSecretIsTakenOnceTheSecretIsRight(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	s.wantAnswer(paid("e1"), http.StatusOK)
	if err := idem.Relayed(s.inbox, other)(t.Context(), b.published[0]); err != nil {
		t.Fatal(err)
	}
	take := idem.Relayed(s.inbox, other, secret)
	for stored, err := range s.inbox.List(t.Context(), idem.Filter{States: []idem.State{idem.StateUnhandled}}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := take(t.Context(), broker.Message{Body: stored.Payload}); err != nil {
			t.Fatal(err)
		}
	}
	s.drain(1)
	s.wantEffects(1)
}

// It has no type, and may be anything: a source that ignores events without a type does
// not mean it.
func TestMessageThatIsSetAsideIsNeverIgnored(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.notes.Ignore("")
	message := broker.Message{Body: []byte("not a relay's")}
	wantKept := func(when string) {
		t.Helper()
		kept := s.listed(idem.Filter{States: []idem.State{idem.StateUnhandled}})
		if len(kept) != 1 || !bytes.HasSuffix(kept[0].Payload, message.Body) {
			t.Fatalf("%s, what is unhandled is %v, want the message\n%s", when, kept, s.logged())
		}
	}
	for name, take := range map[string]func(context.Context, broker.Message) error{
		"an inbox": idem.Relayed(s.inbox, secret), "a processor": idem.Relayed(s.processor, secret),
	} {
		if err := take(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		wantKept("received by " + name)
	}
	if n, err := s.inbox.Requeue(t.Context(), idem.Filter{}); n != 1 || err != nil {
		t.Fatalf("Requeue = %d, %v, want 1", n, err)
	}
	s.drain(1)
	wantKept("requeued")
	if diff := cmp.Diff([]idem.Outcome{idem.Unhandled, idem.Duplicate, idem.Unhandled}, s.outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

func TestMessageOfAnotherSourceIsSetAside(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	s.wantAnswer(paid("e1"), http.StatusOK)
	shop := s.newOutbox(b)
	if err := idem.Relayed(shop, secret)(t.Context(), b.published[0]); err != nil {
		t.Fatalf("the message would block its queue: %v", err)
	}
	s.wantStates(map[idem.State]int{idem.StateUnhandled: 1})
}

// wantStates counts all stored events by state.
func (s *app) wantStates(want map[idem.State]int) {
	s.Helper()
	got := queryOne[map[idem.State]int](s, `select coalesce(jsonb_object_agg(state, n), '{}') from (select state, count(*) as n from idem_events group by state) c`)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error("events by state (-want +got):\n" + diff)
	}
}

func TestRelayShowsNoSecret(t *testing.T) {
	t.Parallel()
	r := idem.NewRelay(&notes{}, &fakeBroker{}, secret)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if said := fmt.Sprintf(verb, r); strings.Contains(said, secret) {
			t.Errorf("%s shows the secret", verb)
		}
	}
}

func TestShortSecretPanics(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"relay":     func() { idem.NewRelay(&notes{}, &fakeBroker{}, "short") },
		"consumer":  func() { idem.Relayed(idem.NewProcessor(nil, &notes{}), secret, "") },
		"no secret": func() { idem.Relayed(idem.NewProcessor(nil, &notes{})) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestDryRunOfARelaySaysWhereToGo(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	status, answer, err := s.post(t.Context(), paid("e1"), map[string]string{idem.DryRunHeader: "1"})
	if want := `{"received":false,"dry_run":"published"}`; status != http.StatusServiceUnavailable || answer != want || err != nil {
		t.Errorf("answered %d %s, %v, want 503 %s", status, answer, err, want)
	}
	if len(b.published) != 0 {
		t.Errorf("published %v", b.published)
	}
	if !strings.Contains(s.logged(), "address of a Processor or an Inbox") {
		t.Error("the log does not say where to go:\n" + s.logged())
	}
}

// A consumer group has lost its offsets, or somebody who may write to the topic
// publishes once more what he has read there.
func TestMessageWhoseEventIsForgottenHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	s, _ := newRelayApp(t, b)
	s.wantAnswer(paid("e1"), http.StatusOK)
	take := idem.Relayed(s.inbox, secret)
	if err := take(t.Context(), b.published[0]); err != nil {
		t.Fatal(err)
	}
	s.drain(1)
	s.exec(`update idem_events set received_at = '2020-01-01'`)
	s.wantPruned(s.inbox, 1)
	s.inbox.Retention, s.inbox.AllowProcessingTwice = time.Nanosecond, true // the message is older
	for range 2 {
		if err := take(t.Context(), b.published[0]); err != nil {
			t.Fatalf("the message would block its queue: %v", err)
		}
	}
	s.drain(0)
	s.wantEffects(1)
	s.wantStates(map[idem.State]int{idem.StateUnhandled: 1})
}

// A broker drops a message that has the ID of an earlier one.
func TestEventsOfDifferentAccountsHaveDifferentMessageIDs(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{}
	r := idem.NewRelay(&notes{}, b, secret)
	r.Logger = nil
	for _, e := range []idem.Event{
		{Scope: "a", ID: "b/c"},
		{Scope: "a/b", ID: "c"},
		{ID: "a/b/c"},
		{ID: "c"},
	} {
		if _, err := r.Accept(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]bool{}
	for _, m := range b.published {
		ids[m.ID] = true
	}
	if len(ids) != len(b.published) {
		t.Errorf("%d events have %d IDs: %v", len(b.published), len(ids), ids)
	}
}
