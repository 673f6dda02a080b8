package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/canary"
	"github.com/paghooks/paghooks/internal/testkit"
)

const secret = "0123456789abcdef0123456789abcdef"

// publisherFunc publishes with a function.
type publisherFunc func(ctx context.Context, m broker.Message) error

func (f publisherFunc) Publish(ctx context.Context, m broker.Message) error { return f(ctx, m) }

// newRelayApp is an inbox app whose deliveries go to a relay with this publisher.
func newRelayApp(t *testing.T, p broker.Publisher) (*testkit.Shop, *relay.Relay) {
	t.Helper()
	s := newApp(t)
	s.On(testkit.Pay)
	r := relay.New(s.Notes, p, secret)
	r.Observe, r.Logger = s.Observe, s.Logger()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s, r
}

func TestRelayedEventIsTheDeliveredOne(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	status, answer, err := s.Post(t.Context(), testkit.Paid("e1"), map[string]string{"account": "branch"})
	if err != nil || status != http.StatusOK {
		t.Fatalf("answered %d %s, %v, want 200", status, answer, err)
	}
	s.WantState("e1", "")
	if len(b.Published()) != 1 {
		t.Fatalf("%d messages are published, want 1", len(b.Published()))
	}
	m := b.Published()[0]
	if diff := cmp.Diff(broker.Message{Source: "notes", ID: "branch/e1", Type: "paid", Key: "branch/o1"}, m, ignoreBody); diff != "" {
		t.Error("the message (-want +got):\n" + diff)
	}
	take := relay.To(s.Inbox, secret)
	for range 2 { // brokers deliver twice
		if err := take(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	s.Drain(1)
	s.WantEffects(1)
	if got := testkit.QueryOne[string](s, s.Pool, `select event || ' ' || scope from effects`); got != "e1 branch" {
		t.Errorf("the effect is of %q, want event e1 of account branch", got)
	}
	if diff := cmp.Diff([]idem.Outcome{idem.Published, idem.Pending, idem.Duplicate, idem.Done}, s.Outcomes()); diff != "" {
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
		hangs   bool
		status  int
		says    string
	}{
		{"confirmed", func(context.Context, broker.Message) error { return nil }, false, 200, ""},
		{"the provider must deliver it again", func(context.Context, broker.Message) error { return errors.New("no route") }, false, 503, "no route"},
		{"user code never takes the process down", func(context.Context, broker.Message) error { panic("oops") }, false, 503, "oops"},
		{"nor keeps the provider waiting", func(context.Context, broker.Message) error { runtime.Goexit(); return nil }, false, 503, "ended its goroutine"},
		{"a hanging broker must not mean silence", func(ctx context.Context, _ broker.Message) error { <-ctx.Done(); return ctx.Err() }, true, 503, "deadline"},
		{"nor one that ignores its context", func(context.Context, broker.Message) error { <-hang; return nil }, true, 503, "no answer in time"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s, r := newRelayApp(t, c.publish)
			r.Timeout = testkit.Patience
			if c.hangs {
				r.Timeout = 20 * time.Millisecond
			}
			s.WantAnswer(testkit.Paid("e1"), c.status)
			if !strings.Contains(s.Logged(), c.says) {
				t.Errorf("the log does not say %q:\n%s", c.says, s.Logged())
			}
		})
	}
}

// orStored is a publisher of which an inbox stores what the broker does not take.
type orStored struct {
	broker.Publisher
	store broker.Handle
}

func (p orStored) Publish(ctx context.Context, m broker.Message) error {
	if p.Publisher.Publish(ctx, m) == nil {
		return nil
	}
	return p.store(ctx, m)
}

func TestWhileTheBrokerIsUnavailableAPublisherMayHaveTheInboxStoreTheEvent(t *testing.T) {
	t.Parallel()
	away := publisherFunc(func(context.Context, broker.Message) error { return errors.New("broker is unavailable") })
	p := &orStored{Publisher: away}
	s, _ := newRelayApp(t, p)
	p.store = relay.To(s.Inbox, secret)
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.Drain(1)
	s.WantEffects(1)
}

func TestRelayPublishesOnlyWhatIsGenuineAndWanted(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	s.Notes.Ignore("noise")
	for _, c := range []struct {
		reason, token, body string
		status              int
	}{
		{"not genuine", "wrong", testkit.Paid("e1"), 401},
		{"ignored by the application", "right", `{"id":"e2","type":"noise"}`, 200},
	} {
		if status, _, err := s.Post(t.Context(), c.body, map[string]string{"token": c.token}); status != c.status || err != nil {
			t.Errorf("%s: answered %d, %v, want %d", c.reason, status, err, c.status)
		}
	}
	if len(b.Published()) != 0 {
		t.Errorf("published %v", b.Published())
	}
}

func TestRelayShowsNoSecret(t *testing.T) {
	t.Parallel()
	r := relay.New(testkit.NewSource("notes"), &testkit.Broker{}, secret)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if said := fmt.Sprintf(verb, r); strings.Contains(said, secret) {
			t.Errorf("%s shows the secret", verb)
		}
	}
}

func TestShortSecretPanics(t *testing.T) {
	t.Parallel()
	inbox := newApp(t).Inbox
	for name, f := range map[string]func(){
		"relay":     func() { relay.New(testkit.NewSource("notes"), &testkit.Broker{}, "short") },
		"consumer":  func() { relay.To(inbox, secret, "") },
		"no secret": func() { relay.To(inbox) },
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
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	status, answer, err := s.Post(t.Context(), testkit.Paid("e1"), map[string]string{idem.DryRunHeader: "1"})
	if want := `{"received":false,"dry_run":"published"}`; status != http.StatusServiceUnavailable || answer != want || err != nil {
		t.Errorf("answered %d %s, %v, want 503 %s", status, answer, err, want)
	}
	if len(b.Published()) != 0 {
		t.Errorf("published %v", b.Published())
	}
	if !strings.Contains(s.Logged(), "address of an Inbox") {
		t.Error("the log does not say where to go:\n" + s.Logged())
	}
}

func TestCanaryThroughARelayIsGreenOnlyWhileAConsumerHandlesIt(t *testing.T) {
	t.Parallel()
	var consumer broker.Handle // nil while none runs
	s, _ := newRelayApp(t, publisherFunc(func(ctx context.Context, m broker.Message) error {
		if consumer == nil {
			return nil
		}
		return consumer(ctx, m)
	}))
	c := canary.New("notes", s.URL, []byte(`{"id":"canary-of-a-shop","type":"`+canary.EventType+`"}`), func(h http.Header, _ []byte) { h.Set("token", "right") })
	c.Logger, c.Arrived = nil, canary.Arrivals(s.Inbox)
	for _, test := range []struct {
		consumer broker.Handle
		says     string
	}{
		{relay.To(s.Inbox, secret), "it was handled"},
		{nil, "see whether consumers run"},
		{relay.To(s.Inbox, "another secret, of thirty-two characters"), "have the relay's secret"},
		{relay.To(s.Inbox, secret), "it was handled"},
	} {
		consumer = test.consumer
		green := test.says == "it was handled"
		send := func(want string) {
			err := c.Send(t.Context())
			for err != nil && !strings.Contains(err.Error(), want) { // on a busy machine a second may be over before the relay has answered
				err = c.Send(t.Context())
			}
			if (err == nil) != green {
				t.Errorf("the canary ended with %v, want that %q", err, test.says)
			}
		}
		if c.Timeout = time.Second; green {
			c.Timeout = testkit.Patience
			send("")
		} else { // red from the second on
			send("no consumer has handled it within 1s")
			send("no consumer has handled it within 1s")
		}
		if says := c.Examine(t.Context(), health.New(c).Limits)[0]; says.Healthy != green || !strings.Contains(says.Says, test.says) {
			t.Errorf("health says %+v, want %q", says, test.says)
		}
	}
	s.WantEffects(0)
}

// A broker drops a message that has the ID of an earlier one.
func TestEventsOfDifferentAccountsHaveDifferentMessageIDs(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	r := relay.New(testkit.NewSource("notes"), b, secret)
	r.Logger = nil
	for _, e := range []idem.Event{
		{Scope: "a", ID: "b/c", Type: "paid"},
		{Scope: "a/b", ID: "c", Type: "paid"},
		{ID: "a/b/c", Type: "paid"},
		{ID: "c", Type: "paid"},
	} {
		if _, err := r.Accept(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]bool{}
	for _, m := range b.Published() {
		ids[m.ID] = true
	}
	if len(ids) != len(b.Published()) {
		t.Errorf("%d events have %d IDs: %v", len(b.Published()), len(ids), ids)
	}
}

// What a relay acknowledges must not be lost behind it.
func TestBodiesThatNameNoEventPassARelayAndAreParkedEach(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	for _, body := range []string{"", "\r\n"} {
		if status, answer, err := s.Post(t.Context(), body, nil); status != http.StatusServiceUnavailable || !strings.Contains(answer, "empty_body") || err != nil {
			t.Errorf("%q: answered %d %s, %v", body, status, answer, err)
		}
	}
	for range 2 {
		for _, body := range []string{"{}", `{"id":"1","data":` + testkit.Paid("e1") + `}`} {
			if status, answer, err := s.Post(t.Context(), body, nil); status != http.StatusOK || err != nil {
				t.Errorf("%q: answered %d %s, %v", body, status, answer, err)
			}
		}
	}
	if len(b.Published()) != 4 {
		t.Fatalf("%d messages were published", len(b.Published()))
	}
	for range 2 { // a broker delivers at least once
		for _, m := range b.Published() {
			if m.Type != idem.UnreadableType {
				t.Errorf("a message has the type %q", m.Type)
			}
			if err := relay.To(s.First, secret)(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
	}
	var parked int
	if err := s.Pool.QueryRow(t.Context(), `select count(*) from idem_events where state = 'parked' and last_error like '%an envelope is%'`).Scan(&parked); err != nil || parked != 4 {
		t.Errorf("%d are parked, %v, want 4", parked, err)
	}
	c := canary.New("notes", s.URL, []byte(`{"type":"`+canary.EventType+`"}`), func(h http.Header, _ []byte) { h.Set("token", "right") })
	c.Logger, c.Arrived = nil, canary.Arrivals(s.Inbox)
	for altered, want := range map[string]string{"": "its body arrived empty", "{}": "another body arrived than was sent"} {
		c.Transport = sending{altered}
		if err := c.Send(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the canary says %v, want %q", err, want)
		}
	}
}

// sending is a network that sends another body.
type sending struct{ body string }

func (s sending) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(s.body)), int64(len(s.body))
	return http.DefaultTransport.RoundTrip(r)
}
