package relay_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/internal/testkit"
)

// patience is a last resort: what is awaited comes much earlier, or never.
const patience = time.Minute

// fakeBroker notes what is published.
type fakeBroker struct {
	mu        sync.Mutex
	published []broker.Message
}

func (b *fakeBroker) Publish(_ context.Context, m broker.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.published = append(b.published, m)
	return nil
}

// app is an application under test, with receivers of what a relay published.
type app struct {
	*testkit.Shop
	first *idem.Inbox
	inbox *idem.Inbox
	url   string // of the relay
}

func newApp(t *testing.T) *app {
	t.Helper()
	s := &app{Shop: testkit.NewShop(t)}
	s.first, s.inbox = idem.NewInbox(s.Pool, s.Notes), idem.NewInbox(s.Pool, s.Notes)
	s.first.WorkFirst = true
	s.inbox.Backoff = func(int) time.Duration { return 0 }
	for _, i := range []*idem.Inbox{s.first, s.inbox} {
		i.Observe, i.Logger = s.Observe, s.Logger()
	}
	return s
}

// wantAnswer delivers a body and checks the status.
func (s *app) wantAnswer(body string, want int) {
	s.Helper()
	status, answer, err := testkit.Post(s.Context(), s.url, body, nil)
	if err != nil {
		s.Fatal(err)
	}
	if status != want {
		s.Errorf("the delivery was answered %d %s, want %d\n%s", status, answer, want, s.Logged())
	}
}

// drain has the inbox process what is due, and checks how many attempts that took.
func (s *app) drain(want int) {
	s.Helper()
	before := s.Attempts()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.inbox.Drain(ctx); err != nil {
		s.Fatalf("Drain = %v\n%s", err, s.Logged())
	}
	if got := s.Attempts() - before; got != want {
		s.Errorf("the workers made %d attempts, want %d\n%s", got, want, s.Logged())
	}
}

// listed returns the stored events that f chooses.
func (s *app) listed(f idem.Filter) (found []idem.StoredEvent) {
	s.Helper()
	for e, err := range s.inbox.List(s.Context(), f) {
		if err != nil {
			s.Fatal(err)
		}
		found = append(found, e)
	}
	return found
}

// wantStates counts all stored events by state.
func (s *app) wantStates(want map[idem.State]int) {
	s.Helper()
	got := testkit.QueryOne[map[idem.State]int](s, s.Pool, `select coalesce(jsonb_object_agg(state, n), '{}') from (select state, count(*) as n from idem_events group by state) c`)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error("events by state (-want +got):\n" + diff)
	}
}
