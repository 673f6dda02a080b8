package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestMessageThatNoRelaySignedReachesNoHandler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		body   func(genuine []byte) []byte
	}{
		{"not a relay's", func([]byte) []byte { return []byte(testkit.Paid("e1")) }},
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
			b := &testkit.Broker{}
			s, _ := newRelayApp(t, b)
			s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
			take := relay.To(s.Inbox, secret)
			body := c.body(bytes.Clone(b.Published()[0].Body))
			for range 2 {
				if err := take(t.Context(), broker.Message{Body: body}); err != nil {
					t.Fatalf("the message would block its queue: %v", err)
				}
			}
			if n, err := s.Inbox.Replay(t.Context(), idem.Filter{}); n.Done != 0 || err != nil {
				t.Fatalf("Replay = %+v, %v, want nothing done", n, err)
			}
			s.Drain(0)
			s.WantEffects(0)
			wantStates(s, map[idem.State]int{idem.StateParked: 1})
		})
	}
}

// wrapped is an inbox with an Accept of the application's own, which forgets the error.
type wrapped struct{ *idem.Inbox }

func (wrapped) Accept(context.Context, idem.Event) (idem.Outcome, error) { return idem.Retrying, nil }

// What a consumer acknowledges is gone from the broker.
func TestMessageIsNotAcknowledgedWhileItsEventIsNotStored(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	if err := relay.To(wrapped{s.Inbox}, secret)(t.Context(), b.Published()[0]); err == nil {
		t.Error("the message is acknowledged, and its event is not stored")
	}
	if err := relay.To(s.Inbox, secret)(t.Context(), b.Published()[0]); err != nil {
		t.Error(err)
	}
	wantStates(s, map[idem.State]int{idem.StatePending: 1})
}

// It may be anything: a source that ignores its type, or events without one, does not mean
// it.
func TestMessageThatIsSetAsideIsNeverIgnored(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Notes.Ignore("", relay.SetAsideType)
	message := broker.Message{Body: []byte("not a relay's")}
	wantKept := func(when string) {
		t.Helper()
		kept := s.Listed(idem.Filter{States: []idem.State{idem.StateParked}})
		if len(kept) != 1 || kept[0].Type != relay.SetAsideType || !bytes.Equal(kept[0].Payload, message.Body) {
			t.Fatalf("%s, what is parked is %v, want the message\n%s", when, kept, s.Logged())
		}
	}
	for name, take := range map[string]func(context.Context, broker.Message) error{
		"an inbox": relay.To(s.Inbox, secret), "work first": relay.To(s.First, secret),
	} {
		if err := take(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		wantKept("received by " + name)
	}
	if n, err := s.Inbox.Requeue(t.Context(), idem.Filter{}); n != 1 || err != nil {
		t.Fatalf("Requeue = %d, %v, want 1", n, err)
	}
	s.Drain(1)
	wantKept("requeued")
	if diff := cmp.Diff([]idem.Outcome{idem.Parked, idem.Duplicate, idem.Parked}, s.Outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

// A handler of all types, also of those that no provider has, means genuine events.
func TestMessageThatIsSetAsideReachesNoHandlerOfAllTypes(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	idem.HandleOthers(&s.Notes.Routes, func(string) bool { return true }, testkit.Pay)
	for _, receiver := range []idem.Receiver{s.Inbox, s.First} {
		if err := relay.To(receiver, secret)(t.Context(), broker.Message{Body: []byte(testkit.Paid("e1"))}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.First.Replay(t.Context(), idem.Filter{}); n.Done != 0 || err != nil {
		t.Errorf("Replay = %+v, %v, want nothing done", n, err)
	}
	if n, err := s.Inbox.Requeue(t.Context(), idem.Filter{}); n != 1 || err != nil {
		t.Errorf("Requeue = %d, %v, want 1", n, err)
	}
	s.Drain(1)
	s.WantEffects(0)
	wantStates(s, map[idem.State]int{idem.StateParked: 1})
}

// A provider without event ids has its bodies name its events.
func TestMessageThatIsSetAsideHasTheIDOfNoEvent(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(testkit.Pay)
	body := []byte(testkit.Paid("e1"))
	if err := relay.To(s.Inbox, secret)(t.Context(), broker.Message{Body: body}); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Inbox.Accept(t.Context(), idem.Event{Type: "paid", Payload: body}); o != idem.Pending || err != nil {
		t.Errorf("the genuine event is %s, %v, want pending", o, err)
	}
	s.Drain(1)
	s.WantEffects(1)
}

func TestMessageOfAnotherSourceIsSetAside(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	shop := outbox.New(s.Pool, "shop", b)
	if err := relay.To(shop, secret)(t.Context(), b.Published()[0]); err != nil {
		t.Fatalf("the message would block its queue: %v", err)
	}
	wantStates(s, map[idem.State]int{idem.StateParked: 1})
}

// A consumer group has lost its offsets, or somebody who may write to the topic
// publishes once more what he has read there.
func TestMessageWhoseEventIsForgottenHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	take := relay.To(s.Inbox, secret)
	if err := take(t.Context(), b.Published()[0]); err != nil {
		t.Fatal(err)
	}
	s.Drain(1)
	s.Exec(`update idem_events set received_at = '2020-01-01'`)
	var forgotten int64
	for range 2 { // what is old by the first run is forgotten by the second, a day later
		s.Exec(`update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`)
		n, err := s.Inbox.Prune(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		forgotten += n
	}
	if forgotten != 1 {
		t.Fatalf("two runs of Prune forget %d, want 1", forgotten)
	}
	s.Inbox.Retention.Events, s.Inbox.Retention.AllowProcessingTwice = time.Nanosecond, true // the message is older
	for range 2 {
		if err := take(t.Context(), b.Published()[0]); err != nil {
			t.Fatalf("the message would block its queue: %v", err)
		}
	}
	s.Drain(0)
	s.WantEffects(1)
	wantStates(s, map[idem.State]int{idem.StateParked: 1})
}

// A wrong secret must not pass for a quiet day, and what it costs has an end.
func TestWhatIsSetAsideMakesHealthRedAndIsNeverForgotten(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	take := relay.To(s.Inbox, secret)
	for n := range 3 {
		if err := take(t.Context(), broker.Message{Body: fmt.Append(nil, "a stranger's ", n)}); err != nil {
			t.Fatal(err)
		}
	}
	parked := check.Result{}
	for _, c := range health.New(s.Inbox).Report().Checks {
		if c.Name == "parked" {
			parked = c
		}
	}
	if parked.Healthy || !strings.Contains(parked.Says, "3 events are parked") {
		t.Errorf("health says %+v, want that 3 are parked", parked)
	}
	s.Exec(`update idem_events set received_at = '2020-01-01'`)
	for range 2 {
		s.Exec(`update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`)
		if n, err := s.Inbox.Prune(t.Context()); n != 0 || err != nil {
			t.Errorf("Prune = %d, %v, want nothing forgotten", n, err)
		}
	}
}

func TestMessagesStayInTheBrokerWhereAThousandAreSetAside(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	take := relay.To(s.Inbox, secret)
	if err := take(t.Context(), broker.Message{Body: []byte("a stranger's")}); err != nil {
		t.Fatal(err)
	}
	s.Exec(`insert into idem_events (event, type, key, state) select 'notes//x' || n, 'paghooks.set_aside', '', 'parked' from generate_series(1, 999) n`)
	s.Exec(`insert into idem_payloads (event, source, lane, received_at, body) select 'notes//x' || n, 'notes', 'notes/%x' || n, now(), '' from generate_series(1, 999) n`)
	again := relay.To(idem.NewInbox(s.Pool, s.Notes), secret) // which has counted nothing yet
	if err := again(t.Context(), broker.Message{Body: []byte("another stranger's")}); err == nil || !strings.Contains(err.Error(), "1000 messages are set aside, and no further one is") {
		t.Errorf("the 1,001st is taken with %v, want an error", err)
	}
}

// The consumers have had a wrong secret.
func TestMessagesOfAWrongSecretComeBackWithTheRightOne(t *testing.T) {
	t.Parallel()
	const wrong = "another secret, of thirty-two characters"
	for _, mode := range []string{"an inbox", "work first"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := &testkit.Broker{}
			s, _ := newRelayApp(t, b)
			var to idem.Receiver = s.Inbox
			if mode == "work first" {
				to = s.First
			}
			for _, id := range []string{"e1", "e2", "e3"} {
				s.WantAnswer(testkit.Paid(id), http.StatusOK)
			}
			for _, m := range append(b.Published(), broker.Message{Body: []byte("a stranger's")}) {
				if err := relay.To(to, wrong)(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if err := relay.To(to, secret)(t.Context(), b.Published()[1]); err != nil { // came again meanwhile
				t.Fatal(err)
			}
			if r, err := relay.Readmit(t.Context(), to, idem.Filter{}, wrong); r.Accepted != 0 || r.Left != 4 || r.Why == nil || !strings.Contains(r.Why.Error(), "secret") || err != nil {
				t.Errorf("with the wrong secret: %+v, %v", r, err)
			}
			for _, want := range []int{3, 0} {
				if r, err := relay.Readmit(t.Context(), to, idem.Filter{}, wrong, secret); r.Accepted != want || r.Left != 1 || r.Why == nil || err != nil {
					t.Errorf("with the right one: %+v, %v, want %d accepted", r, err, want)
				}
			}
			if mode == "an inbox" {
				s.Drain(3)
			}
			s.WantEffects(3)
			wantStates(s, map[idem.State]int{idem.StateDone: 3, idem.StateDiscarded: 3, idem.StateParked: 1})
		})
	}
}

func TestMessageWhoseHandlerFailsStaysSetAside(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.Exec(`alter table effects rename to none`)
	if err := relay.To(s.First, "another secret, of thirty-two characters")(t.Context(), b.Published()[0]); err != nil {
		t.Fatal(err)
	}
	if r, err := relay.Readmit(t.Context(), s.First, idem.Filter{}, secret); r.Accepted != 0 || r.Left != 1 || err == nil || !strings.Contains(err.Error(), "effects") {
		t.Errorf("Readmit = %+v, %v", r, err)
	}
	s.Exec(`alter table none rename to effects`)
	if r, err := relay.Readmit(t.Context(), s.First, idem.Filter{}, secret); r.Accepted != 1 || r.Left != 0 || err != nil {
		t.Errorf("Readmit = %+v, %v", r, err)
	}
	s.WantEffects(1)
}

// The messages that a person was shown, and no others.
func TestReadmitTakesOnlyTheMessagesOfItsFilter(t *testing.T) {
	t.Parallel()
	b := &testkit.Broker{}
	s, _ := newRelayApp(t, b)
	take := relay.To(s.Inbox, "another secret, of thirty-two characters")
	for _, id := range []string{"e1", "e2", "e3"} {
		s.WantAnswer(testkit.Paid(id), http.StatusOK)
	}
	for _, m := range b.Published()[:2] {
		if err := take(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := operator.New(s.Inbox, "ana").PlanReplay(t.Context(), idem.Filter{Types: []string{relay.SetAsideType}})
	if err != nil || plan.Count != 2 {
		t.Fatalf("%d events are seen, %v, want two", plan.Count, err)
	}
	seen := plan.Filter
	if err := take(t.Context(), b.Published()[2]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why    string
		filter idem.Filter
		want   int
	}{
		{"nothing was chosen", idem.Filter{Events: []string{}}, 0},
		{"one of those that were shown, whatever type and state it names", idem.Filter{Events: seen.Events[:1], Types: []string{"paid"}, States: []idem.State{idem.StateParked}}, 1},
		{"all that were shown, of which one is left", seen, 1},
		{"the zero filter", idem.Filter{}, 1},
	} {
		if r, err := relay.Readmit(t.Context(), s.Inbox, c.filter, secret); r.Accepted != c.want || r.Left != 0 || err != nil {
			t.Errorf("%s: %+v, %v, want %d accepted", c.why, r, err, c.want)
		}
	}
}

func TestReadmitWithoutAUsableSecretIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	if err := relay.To(s.Inbox, secret)(t.Context(), broker.Message{Body: []byte("a stranger's")}); err != nil {
		t.Fatal(err)
	}
	for says, secrets := range map[string][]string{
		"relay: Readmit has no secret":                              nil,
		"relay: a secret of Readmit has 5 characters, and needs 32": {secret, "short"},
	} {
		if r, err := relay.Readmit(t.Context(), s.Inbox, idem.Filter{}, secrets...); r != (relay.Readmitted{}) || err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("Readmit = %+v, %v, want %q", r, err, says)
		}
	}
	wantStates(s, map[idem.State]int{idem.StateParked: 1})
}
