package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

func TestListTakesWhatItsFilterSays(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(refuseBad)
	s.wantAnswer(paid("done"), http.StatusOK)
	s.wantAnswer(paid("bad1"), http.StatusOK)
	s.wantAnswer(paid("bad2"), http.StatusOK)
	s.wantAnswer(`{"id":"with/slash","type":"new","order":"o2"}`, http.StatusOK)
	for _, account := range []string{"a/b", "100%"} {
		if outcome, err := s.processor.Accept(t.Context(), in(account, identify([]byte(newBody)))); outcome != idem.Unhandled {
			t.Fatal(outcome, err)
		}
	}
	s.exec(`insert into idem_events (event, type, key, state) values ('notes//retrying', 'paid', 'o1', 'retrying')`)
	s.exec(`insert into idem_payloads (event, source, received_at, body) values ('notes//retrying', 'notes', now(), '')`)
	s.openInbox().store(letter("pending", "o1", 0))
	if n, err := s.processor.Discard(t.Context(), idem.Filter{IDs: []string{"bad2"}}, "test"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	s.exec(`insert into idem_events (event, type, key, state) values ('notes2//other', 'new', '', 'parked')`)
	s.exec(`insert into idem_payloads (event, source, received_at, body) values ('notes2//other', 'notes2', now(), '')`)
	// The order is that of arrival, whatever the names are.
	for _, table := range []string{"idem_events", "idem_payloads"} {
		s.exec(`update ` + table + ` set received_at = '2026-11-20 00:00+00' where event = 'notes//with/slash'`)
	}

	every := []idem.State{
		idem.StateUnhandled, idem.StateParked, idem.StatePending, idem.StateRetrying, idem.StateDone, idem.StateDiscarded,
	}
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		filter idem.Filter
		want   []string
	}{
		"received from then on":  {idem.Filter{ReceivedFrom: day.Add(time.Microsecond)}, []string{"bad1", "a/b e1", "100% e1"}},
		"received before":        {idem.Filter{ReceivedUntil: day.Add(time.Microsecond)}, []string{"with/slash"}},
		"the end is not in it":   {idem.Filter{ReceivedFrom: day, ReceivedUntil: day}, nil},
		"the start is in it":     {idem.Filter{ReceivedFrom: day, ReceivedUntil: day.Add(1000)}, []string{"with/slash"}},
		"what needs somebody":    {idem.Filter{}, []string{"with/slash", "bad1", "a/b e1", "100% e1"}},
		"every state, none done": {idem.Filter{States: every}, []string{"with/slash", "bad1", "a/b e1", "100% e1", "retrying", "pending"}},
		"what has failed":        {idem.Filter{States: every, Failed: true}, []string{"bad1"}},
		"one state":              {idem.Filter{States: []idem.State{idem.StatePending}}, []string{"pending"}},
		"no state":               {idem.Filter{States: []idem.State{}}, nil},
		"what is done":           {idem.Filter{States: []idem.State{idem.StateDone}}, nil},
		"what is discarded":      {idem.Filter{States: []idem.State{idem.StateDiscarded}}, nil},
		"one account":            {idem.Filter{Scopes: []string{"a/b"}}, []string{"a/b e1"}},
		"two accounts":           {idem.Filter{Scopes: []string{"a/b", "100%"}}, []string{"a/b e1", "100% e1"}},
		"the nameless account":   {idem.Filter{Scopes: []string{""}}, []string{"with/slash", "bad1"}},
		"no account":             {idem.Filter{Scopes: []string{}}, nil},
		"a type":                 {idem.Filter{Types: []string{"paid"}}, []string{"bad1"}},
		"an entity":              {idem.Filter{Keys: []string{"o2"}}, []string{"with/slash"}},
		"ids":                    {idem.Filter{IDs: []string{"bad1", "with/slash", "nobody"}}, []string{"with/slash", "bad1"}},
		"half an id":             {idem.Filter{IDs: []string{"slash"}}, nil},
		"no id":                  {idem.Filter{IDs: []string{}}, nil},
		"two narrow more":        {idem.Filter{Types: []string{"new"}, Keys: []string{"o1"}, Scopes: []string{"a/b", ""}}, []string{"a/b e1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ids(s.listed(c.filter))); diff != "" {
				t.Error("List (-want +got):\n" + diff)
			}
			if n, err := operator.New(s.processor, "").Count(t.Context(), c.filter); n != int64(len(c.want)) || err != nil {
				t.Errorf("Count = %d, %v, want %d", n, err, len(c.want))
			}
			slices.Reverse(c.want)
			if diff := cmp.Diff(c.want, ids(s.paged(c.filter, 2))); diff != "" {
				t.Error("Page (-want +got):\n" + diff)
			}
		})
	}
}

// paged reads n events at a time.
func (s *app) paged(f idem.Filter, n int) (all []idem.StoredEvent) {
	s.Helper()
	for before := (operator.Place{}); ; {
		p, err := operator.New(s.processor, "").Page(s.Context(), f, before, n)
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, p.Events...)
		if before = p.Next; before == (operator.Place{}) {
			return all
		}
	}
}

// Whoever asks about one charge wants all of it, also what is done.
func TestGetAndOfKeyReturnEventsInEveryState(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.inbox.KeepPayloads = true
	s.on(refuseBad)
	s.store(letter("done", "o1", 1), letter("bad1", "o1", 2), letter("behind", "o1", 3), letter("other", "o2", 1),
		in("shop/1", letter("done", "o1", 1)))
	s.drain()
	all, err := operator.New(s.inbox, "").OfKey(t.Context(), []string{""}, "o1", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"done", "bad1", "behind"}, ids(all)); diff != "" {
		t.Error("OfKey (-want +got):\n" + diff)
	}
	if some, err := operator.New(s.inbox, "").OfKey(t.Context(), []string{""}, "o1", 2); !slices.Equal(ids(some), []string{"bad1", "behind"}) || err != nil {
		t.Errorf("OfKey of two = %v, %v, want the latest", ids(some), err)
	}
	if none, err := operator.New(s.inbox, "").OfKey(t.Context(), []string{"shop"}, "o1", 10); len(none) != 0 || err != nil {
		t.Errorf("OfKey of another account = %v, %v", ids(none), err)
	}
	for _, want := range all {
		got, ok, err := operator.New(s.inbox, "").Lookup(t.Context(), "", want.ID)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if diff := cmp.Diff(want, got.StoredEvent); diff != "" {
			t.Error("Lookup, not as OfKey (-OfKey +Lookup):\n" + diff)
		}
		if string(got.Payload) != string(letter(got.ID, "o1", 0).Payload) {
			t.Errorf("the payload of %s is %q", got.ID, got.Payload)
		}
	}
	if got, ok, err := operator.New(s.inbox, "").Lookup(t.Context(), "shop/1", "done"); !ok || got.State != idem.StateDone || got.Scope != "shop/1" || err != nil {
		t.Errorf("Lookup = %+v, %t, %v", got, ok, err)
	}
	if got, ok, err := operator.New(s.inbox, "").Lookup(t.Context(), "", "nobody"); ok || err != nil {
		t.Errorf("Lookup = %+v, %t, %v, want nothing", got, ok, err)
	}
}

func TestListTellsWhatIsStored(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	s.openInbox()
	e := in("shop/1", letter("e1", "o1", 0))
	e.OccurredAt = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s.store(e)
	s.drain(1)
	s.exec(`update idem_events set crashes = 2, received_at = '2026-11-20 11:00Z'`)
	s.exec(`update idem_payloads set due_at = '2026-11-20 12:00Z'`)
	want := []idem.StoredEvent{{
		Event: e, State: idem.StatePending, Attempts: 1, Crashes: 2, LastError: "no such order",
		ReceivedAt: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC), DueAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}}
	got := s.listed(idem.Filter{States: []idem.State{idem.StatePending}})
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error("List (-want +got):\n" + diff)
	}
	s.exec(`update idem_events set last_error = null`)
	s.exec(`update idem_payloads set occurred_at = null, due_at = null`)
	got = s.listed(idem.Filter{States: []idem.State{idem.StatePending}})
	if s := got[0]; !s.OccurredAt.IsZero() || !s.DueAt.IsZero() || s.LastError != "" {
		t.Errorf("what is not stored is listed as %+v", s)
	}
}

func TestListGoesThroughMoreThanOnePage(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'unhandled', now() - n * interval '1 second' from generate_series(1, 250) n`)
	s.exec(`insert into idem_payloads (event, source, received_at, body) select event, 'notes', received_at, convert_to(format('{"id":%s}', to_json(split_part(event, '/', 3))), 'UTF8') from idem_events`)
	s.on(pay)
	done := map[int]bool{30: true, 120: true, 220: true} // meanwhile
	var got, want []string
	for n := 250; n > 0; n-- {
		if n != 120 && n != 30 {
			want = append(want, fmt.Sprint(n))
		}
	}
	for stored, err := range s.processor.List(t.Context(), idem.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 { // 220 is read already, with the first page
			for n := range done {
				s.accept(paid(fmt.Sprint(n)), idem.Done)
			}
			s.wantAnswer(`{"id":"late","type":"new"}`, http.StatusOK) // it was not there at the start
		}
		if want := fmt.Sprintf(`{"id":%q}`, stored.ID); string(stored.Payload) != want {
			t.Errorf("event %s is listed with the payload %s", stored.ID, stored.Payload)
		}
		got = append(got, stored.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("List (-want +got):\n" + diff)
	}
}

func TestListThatIsLeftEarlyHoldsNothing(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	for i := range 3 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	seen := 0
	for stored, err := range s.processor.List(t.Context(), idem.Filter{}) {
		if seen++; err != nil || stored.ID != "0" {
			t.Fatal(stored.ID, err)
		}
		if n := s.pool.Stat().AcquiredConns(); n != 0 {
			t.Errorf("%d connections are held while an event is looked at", n)
		}
		break
	}
	if seen != 1 {
		t.Errorf("%d events were listed", seen)
	}
	s.wantEffects(0) // the connection is there
}

func TestListEndsAfterItsFirstError(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.accept(newBody, idem.Unhandled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs []error
	for _, err := range s.processor.List(ctx, idem.Filter{}) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("List yields %v, want context canceled once", errs)
	}
}
