package promises_test

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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestListTakesWhatItsFilterSays(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(refuseBad)
	s.WantAnswer(paid("done"), http.StatusOK)
	s.openInbox().Store(letter("bad1", "o1", 0), letter("bad2", "o3", 0))
	s.Drain(2)
	s.WantAnswer(`{"id":"with/slash","type":"new","order":"o2"}`, http.StatusOK)
	for _, account := range []string{"a/b", "100%"} {
		if outcome, err := s.First.Accept(t.Context(), in(account, identify([]byte(newBody)))); outcome != idem.Unhandled {
			t.Fatal(outcome, err)
		}
	}
	s.Store(letter("pending", "o1", 0))
	if n, err := s.First.Discard(t.Context(), idem.Filter{IDs: []string{"bad2"}}, "test"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	s.Exec(`insert into idem_events (event, type, key, state) values ('notes2//other', 'new', '', 'parked')`)
	s.Exec(`insert into idem_payloads (event, source, received_at, body) values ('notes2//other', 'notes2', now(), '')`)
	// The order is that of arrival, whatever the names are.
	for _, table := range []string{"idem_events", "idem_payloads"} {
		s.Exec(`update ` + table + ` set received_at = '2026-11-20 00:00+00' where event = 'notes//with/slash'`)
	}

	every := []idem.State{
		idem.StateUnhandled, idem.StateParked, idem.StatePending, idem.StateDone, idem.StateDiscarded,
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
		"every state, none done": {idem.Filter{States: every}, []string{"with/slash", "bad1", "a/b e1", "100% e1", "pending"}},
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
			if diff := cmp.Diff(c.want, ids(s.Listed(c.filter))); diff != "" {
				t.Error("List (-want +got):\n" + diff)
			}
			if n, err := operator.New(s.First, "").Count(t.Context(), c.filter); n != int64(len(c.want)) || err != nil {
				t.Errorf("Count = %d, %v, want %d", n, err, len(c.want))
			}
			slices.Reverse(c.want)
			if diff := cmp.Diff(c.want, ids(s.paged(c.filter, 2))); diff != "" {
				t.Error("Page (-want +got):\n" + diff)
			}
		})
	}
}

func TestListTellsWhatIsStored(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	s.openInbox()
	e := in("shop/1", letter("e1", "o1", 0))
	e.OccurredAt = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s.Store(e)
	s.Drain(1)
	s.Exec(`update idem_events set crashes = 2, received_at = '2026-11-20 11:00Z'`)
	s.Exec(`update idem_payloads set due_at = '2026-11-20 12:00Z'`)
	want := []idem.StoredEvent{{
		Event: e, State: idem.StatePending, Attempts: 1, Crashes: 2, LastError: "no such order",
		ReceivedAt: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC), DueAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}}
	got := s.Listed(idem.Filter{States: []idem.State{idem.StatePending}})
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error("List (-want +got):\n" + diff)
	}
	s.Exec(`update idem_events set last_error = null`)
	s.Exec(`update idem_payloads set occurred_at = null, due_at = null`)
	got = s.Listed(idem.Filter{States: []idem.State{idem.StatePending}})
	if s := got[0]; !s.OccurredAt.IsZero() || !s.DueAt.IsZero() || s.LastError != "" {
		t.Errorf("what is not stored is listed as %+v", s)
	}
}

func TestListGoesThroughMoreThanOnePage(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'unhandled', now() - n * interval '1 second' from generate_series(1, 250) n`)
	s.Exec(`insert into idem_payloads (event, source, received_at, body) select event, 'notes', received_at, convert_to(format('{"id":%s}', to_json(split_part(event, '/', 3))), 'UTF8') from idem_events`)
	s.On(pay)
	done := []string{"30", "120", "220"} // meanwhile
	var got, want []string
	for n := 250; n > 0; n-- {
		if n != 120 && n != 30 {
			want = append(want, fmt.Sprint(n))
		}
	}
	for stored, err := range s.First.List(t.Context(), idem.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 { // 220 is read already, with the first page
			s.WantReplayed(idem.Filter{IDs: done}, idem.Replayed{Done: len(done)})
			s.WantAnswer(`{"id":"late","type":"new"}`, http.StatusOK) // it was not there at the start
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
	for stored, err := range s.First.List(t.Context(), idem.Filter{}) {
		if seen++; err != nil || stored.ID != "0" {
			t.Fatal(stored.ID, err)
		}
		if n := s.Pool.Stat().AcquiredConns(); n != 0 {
			t.Errorf("%d connections are held while an event is looked at", n)
		}
		break
	}
	if seen != 1 {
		t.Errorf("%d events were listed", seen)
	}
	s.WantEffects(0) // the connection is there
}

func TestListEndsAfterItsFirstError(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.accept(newBody, idem.Unhandled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs []error
	for _, err := range s.First.List(ctx, idem.Filter{}) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("List yields %v, want context canceled once", errs)
	}
}

func TestASilenceBeginsWithTheNewestEventOfTheSource(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	p := newFirst(pool, &notes{})
	name := p.SourceName()
	if at, err := p.SilentSince(t.Context(), 0); !at.IsZero() || err != nil {
		t.Errorf("without an arrival it is silent since %s, %v", at, err)
	}
	arrive(t, pool, name+"//done", "o1", "done", "3 hours")
	arrive(t, pool, name+"//parked", "o2", "parked", "2 hours")
	arrive(t, pool, name+"//discarded", "o1", "discarded", "1 hour")
	arrive(t, pool, name+"//old", "o1", "done", "5 hours")
	arrive(t, pool, name+"//other", "o3", "done", "2 hours")
	arrive(t, pool, name+"/shop/account", "o1", "done", "30 minutes")
	arrive(t, pool, "another//source", "o1", "done", "1 minute")
	if err := store.NoteCanary(t.Context(), pool, name); err != nil { // it came through a broker just now, and is no arrival
		t.Fatal(err)
	}

	last, err := p.SilentSince(t.Context(), 20*time.Minute)
	if ago := time.Since(last); err != nil || ago < 25*time.Minute || ago > 50*time.Minute {
		t.Errorf("it is silent for %s, %v", ago, err)
	}
	if at, err := p.SilentSince(t.Context(), time.Hour); !at.IsZero() || err != nil {
		t.Errorf("it is silent for an hour, since %s, %v, though an event has come", at, err)
	}
}

// It is asked while a queue is held up, of a table that may hold millions.
func TestALookForASilenceEndsAtTheFirstEventOfIt(t *testing.T) {
	t.Parallel()
	s := openApp(t, idemtest.Pool(t))
	s.Exec(`insert into idem_events (event, type, key, state) select 'notes//' || n, 'paid', n, 'done' from generate_series(1, 20000) n; analyze idem_events`)
	err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		if at, err := store.SilentSince(t.Context(), inTx{tx}, "notes", time.Hour); !at.IsZero() || err != nil {
			t.Errorf("it is silent since %s, %v", at, err)
		}
		var read int
		err := tx.QueryRow(t.Context(), `select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relid = 'idem_events'::regclass`).Scan(&read)
		if read == 0 || read > 1000 {
			t.Errorf("it reads %d events", read)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// paged reads n events at a time.
func (s *app) paged(f idem.Filter, n int) (all []idem.StoredEvent) {
	s.Helper()
	for before := (operator.Place{}); ; {
		p, err := operator.New(s.First, "").Page(s.Context(), f, before, n)
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, p.Events...)
		if before = p.Next; before == (operator.Place{}) {
			return all
		}
	}
}

func arrive(t *testing.T, pool *pgxpool.Pool, row, key, state, ago string) {
	t.Helper()
	const insert = `insert into idem_events (event, type, key, state, received_at) values ($1, 'PAID', $2, $3, now() - $4::interval)`
	if _, err := pool.Exec(t.Context(), insert, row, key, state, ago); err != nil {
		t.Fatal(err)
	}
}
