package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestPruneForgetsOldEventsButNoneThatIsParked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(refuseBad)
	s.WantAnswer(paid("old"), http.StatusOK)
	s.WantAnswer(paid("young"), http.StatusOK)
	s.openInbox().Store(letter("bad-old", "o1", 0))
	s.Drain(1)
	s.WantAnswer(`{"id":"unhandled-old","type":"new"}`, http.StatusOK)
	s.WantAnswer(`{"id":"unhandled-young","type":"new"}`, http.StatusOK)
	s.Exec(`update idem_events set received_at = now() - interval '50 days' where event like '%old'`)
	s.Exec(`update idem_events set received_at = now() - interval '44 days' where event like '%young'`)
	s.Exec(`insert into idem_events (event, type, key, state, received_at) values ('other//old', '', '', 'done', '2020-01-01')`)
	s.wantPruned(s.First, 2)
	left := queryOne[[]string](s, `select array_agg(event order by event) from idem_events where event like 'notes/%'`)
	if diff := cmp.Diff([]string{"notes//bad-old", "notes//unhandled-young", "notes//young"}, left); diff != "" {
		t.Error("left (-want +got):\n" + diff)
	}
	s.WantPayload("unhandled-old", "")
	s.WantPayload("bad-old", paid("bad-old"))
}

func TestPruneWorksInBatches(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'done', '2020-01-01' from generate_series(1, 2500) n`)
	s.wantPruned(s.First, 2500)
}

// An attempt in flight holds its row's lock; pruning must pass it by.
func TestPruneWaitsForNoAttempt(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.WantAnswer(newBody, http.StatusOK)
	s.Exec(`update idem_events set received_at = '2020-01-01'`)
	s.Exec(`insert into idem_events (event, type, key, state, received_at) values ('notes//old', '', '', 'done', '2020-01-01')`)
	s.wantSeen(s.First)
	s.Deploy(func(n *notes) {
		idem.Handle(&n.Routes, "new", func(ctx context.Context, tx pgx.Tx, n *note) error {
			if deleted, err := s.First.Prune(ctx); deleted != 1 || err != nil {
				t.Errorf("Prune = %d, %v, want 1", deleted, err)
			}
			return pay(ctx, tx, n)
		})
	})
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	s.WantEffects(1)
}

// What a handler or an operator has locked stays for the next time.
func TestPruneWaitsForNoRowLock(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.stock(10, 50)
	s.First.Retention.Payloads = 24 * time.Hour
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	for _, lock := range []string{
		`select from idem_events where event = 'notes//done-50' for update`,
		`select from idem_archive where event = 'notes//discarded-10' for update`,
	} {
		if tag, err := tx.Exec(t.Context(), lock); err != nil || tag.RowsAffected() != 1 {
			t.Fatal(tag, err)
		}
	}
	s.wantPruned(s.First, 2)
	s.WantState("done-50", idem.StateDone)
	s.WantState("discarded-50", "")
	s.WantPayload("discarded-10", "{}")
	s.WantPayload("done-10", "")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantPruned(s.First, 1)
	s.WantState("done-50", "")
	s.WantPayload("discarded-10", "")
}

// An event's age counts from when it came first, also if it was kept before it
// was done.
func TestPruneKnowsTheAgeOfEventsThatWereKept(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.First.KeepPayloads = true
	s.openInbox()
	s.Inbox.KeepPayloads = true
	s.WantAnswer(newBody, http.StatusOK)
	s.Store(letter("old", "a", 0), letter("young", "a", 0))
	s.Exec(`update idem_events set received_at = now() - interval '50 days' where not event like '%young'`)
	s.Exec(`update idem_payloads set received_at = now() - interval '50 days' where not event like '%young'`)
	s.Drain(2)
	s.Deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
	s.First.KeepPayloads = true
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	s.First.Retention.Events, s.First.Retention.Payloads = 100*24*time.Hour, 24*time.Hour
	s.wantPruned(s.First, 0)
	if got := queryOne[[]string](s, `select array_agg(event) from idem_archive`); !cmp.Equal(got, []string{"notes//young"}) {
		t.Errorf("payloads are left of %q, want of the young event", got)
	}
	s.First.Retention.Events = 45 * 24 * time.Hour
	s.wantPruned(s.First, 2)
	s.WantState("young", idem.StateDone)
}

// What somebody did by hand must not leave bodies behind, or an entity waiting.
func TestPrunePutsRightWhatPeopleDidByHand(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	m := &fixable{}
	s.On(m.Handle)
	s.First.KeepPayloads = true
	s.WantAnswer(paid("done"), http.StatusOK)
	s.WantAnswer(newBody, http.StatusOK)
	s.Store(letter("bad1", "a", 0), letter("a2", "a", 0))
	s.Drain(1)
	s.Exec(`delete from idem_events where event like '%bad1' or event like '%/e1' or event like '%done'`)
	s.wantPruned(s.First, 0)
	s.WantPayload("bad1", "")
	s.WantPayload("e1", "")
	s.WantPayload("done", "")
	s.WantPayload("a2", string(letter("a2", "a", 0).Payload))
	s.Drain(1) // its entity goes on
	s.WantState("a2", idem.StateDone)
}

// An event whose row was deleted by hand comes again while Prune tidies up: its body is
// an event's again, and stays.
func TestPruneLeavesTheBodyOfAnEventThatIsStoredMeanwhile(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(pay)
	s.Store(letter("e1", "o1", 1))
	const lock = `(hashtextextended(current_schema(), 0))`
	s.Exec(`delete from idem_events;
		create function wait() returns trigger language plpgsql as $$ begin
			perform set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared` + lock + `; return null; end $$;
		create trigger wait after update on idem_payloads for each row execute function wait()`)
	holder, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	if _, err := holder.Exec(t.Context(), `select pg_advisory_xact_lock`+lock); err != nil {
		t.Fatal(err)
	}
	const waits = `select exists (select from pg_locks where locktype = $1 and not granted and pid in (
		select pid from pg_stat_activity where application_name = current_setting('application_name')))`
	accepted, pruned := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Inbox.Accept(t.Context(), letter("e1", "o1", 1)); accepted <- err }()
	s.Until(waits, "advisory")
	go func() { _, err := s.Inbox.Prune(t.Context()); pruned <- err }()
	s.Until(waits, "transactionid")
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-accepted, <-pruned); err != nil {
		t.Fatal(err)
	}
	s.Drain(1)
	s.WantState("e1", idem.StateDone)
}

// Its handler failed, and the next version of the application ignores the type.
func TestIgnoredTypeDoesNotFailForGood(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	idem.Handle(&s.Notes.Routes, "shown", func(context.Context, pgx.Tx, *note) error { return errors.New("no such page") })
	s.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	s.Store(at(1, "e1", "shown", "o1"), letter("e2", "o2", 1))
	s.Drain(2)

	s.Deploy(func(n *notes) {
		n.Ignore("shown")
		idem.Handle(&n.Routes, "paid", pay)
	})
	s.openInbox()
	s.Exec(`update idem_payloads set due_at = now()`)
	s.Drain(2)
	s.WantEffects(1)
	s.WantState("e1", idem.StateDone)
	s.WantState("e2", idem.StateDone)
	h := s.NewHealth(s.Inbox)
	h.MaxFailing = time.Nanosecond
	s.WantHealth("nothing fails", h, "", "")
}

func TestPruneDeletesWhatIsOldInTheAuditTrail(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		retention time.Duration // -1 is the default
		left      []string
	}{
		"two years by default": {-1, []string{"letters 800", "notes 1", "notes 720"}},
		"as it is set":         {30 * day, []string{"letters 800", "notes 1"}},
		"never":                {0, []string{"letters 800", "notes 1", "notes 720", "notes 740"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.On(pay)
			s.Exec(`insert into idem_audit (id, at, actor, action, source, filter, reason, events)
				select age, now() - age * interval '1 day', 'ana', source || ' ' || age, source, '', '', '{}'
				from (values ('notes', 1), ('notes', 720), ('notes', 740), ('letters', 800)) old (source, age)`)
			if c.retention >= 0 {
				s.First.Retention.Audit = c.retention
			}
			s.wantSeen(s.First)
			if n := queryOne[int](s, `select count(*) from idem_audit`); n != 4 {
				t.Errorf("the first run leaves %d actions, want all 4: the clock may be wrong", n)
			}
			s.wantPruned(s.First, 0)
			left := queryOne[[]string](s, `select array_agg(action order by action) from idem_audit`)
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Error("what is left (-want +got):\n" + diff)
			}
		})
	}
}

// Who gives the application no right to delete from its trail means that.
func TestPruneLeavesAnAuditTrailThatTheApplicationMayNotDeleteFrom(t *testing.T) {
	t.Parallel()
	owner, role, name := asRole(t)
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	execAll(t, owner, mayUse+strings.TrimSuffix(name, "_app")+` to `+name, `revoke delete on idem_audit from `+name,
		`insert into idem_audit (id, at, actor, action, source, filter, reason, events) values (1, now() - interval '3 years', 'ana', 'replay', 'notes', '', '', '{}')`)
	s := overPool(t, role)
	s.First = s.NewFirst()
	s.wantSeen(s.First)
	s.wantPruned(s.First, 0)
	if n := queryOne[int](s, `select count(*) from idem_audit`); n != 1 {
		t.Errorf("%d actions are left, want 1", n)
	}
}

func TestRetentionThatIsTooShortIsRefused(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.stock(50)
	short := 45 * time.Minute // 45 days were meant
	s.First.Retention.Events, s.Inbox.Retention.Events = short, short
	for name, do := range map[string]func() error{
		"Prune of the other": func() error { _, err := s.First.Prune(t.Context()); return err },
		"DryPrune":           func() error { _, err := engineOf(s.First).DryPrune(t.Context()); return err },
		"Prune of an inbox":  func() error { _, err := s.Inbox.Prune(t.Context()); return err },
		"Run":                func() error { return s.Inbox.Run(t.Context()) },
		"Drain":              func() error { return s.Inbox.Drain(t.Context()) },
		"Serve":              func() error { return idem.Serve(t.Context(), &http.Server{Addr: "127.0.0.1:0"}, s.First) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "Retention is 45m0s") || !strings.Contains(err.Error(), "AllowProcessingTwice") {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	s.Inbox.Retention.AllowProcessingTwice = true
	s.wantPruned(s.Inbox, 3)
	s.Inbox.Retention.Events = 0
	if _, err := s.Inbox.Prune(t.Context()); err == nil || !strings.Contains(err.Error(), "every event would be forgotten") {
		t.Errorf("without a Retention: %v", err)
	}
}

// Their ids are random: none of them comes again.
func TestOutboxForgetsItsMessagesInDays(t *testing.T) {
	t.Parallel()
	s := appWithClock(t, "0 days")
	outbox, b := outbox.New(s.Pool, "shop", &testkit.Broker{}), broker.Message{Type: "order.paid", Key: "o1"}
	outbox.Logger = s.Logger()
	if err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error { return outbox.EmitTx(context.WithoutCancel(t.Context()), tx, b) }); err != nil {
		t.Fatal(err)
	}
	if err := outbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for day, want := range []int64{0, 0, 0, 1} {
		if n := s.pruneOn(outbox, fmt.Sprintf("%d days", day)); n != want && day < 2 {
			t.Errorf("on day %d %d messages are forgotten, want %d", day, n, want)
		}
	}
	if n := queryOne[int](s, `select count(*) from idem_events where event like 'shop/%'`); n != 0 {
		t.Errorf("%d messages are left after three days", n)
	}
}

func (s *app) wantPruned(p pruner, want int64) {
	s.Helper()
	if n, err := s.prunedTwice(p); n != want || err != nil {
		s.Errorf("two runs of Prune forget %d, %v, want %d", n, err, want)
	}
}

// pruner is any receiver.
type pruner interface {
	Prune(ctx context.Context) (int64, error)
}

// prunedTwice runs Prune twice, a day apart: what is old by the first run is forgotten by the second.
func (s *app) prunedTwice(p pruner) (sum int64, err error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	for range 2 {
		s.dayPasses()
		n, failure := p.Prune(ctx)
		sum, err = sum+n, errors.Join(err, failure)
	}
	return sum, err
}

// dayPasses has the runs of Prune be a day older than they are.
func (s *app) dayPasses() {
	s.Helper()
	s.Exec(`update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`)
}

// wantSeen runs Prune a first time, a day ago: it forgets nothing.
func (s *app) wantSeen(p pruner) {
	s.Helper()
	if n, err := p.Prune(s.Context()); n != 0 || err != nil {
		s.Errorf("the first run of Prune forgets %d, %v, want none", n, err)
	}
	s.dayPasses()
}

// stock stores an event of every state and age in days, with a payload of the
// same age.
func (s *app) stock(ages ...int) {
	s.Helper()
	for _, age := range ages {
		s.Exec(fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at)
			select 'notes//' || state || '-%[1]d', 'paid', '', state, now() - interval '%[1]d days'
			from unnest(array['done', 'unhandled', 'discarded', 'parked', 'pending']) state`, age))
	}
	s.Exec(`insert into idem_payloads (event, source, lane, due_at, received_at, body)
		select event, 'notes', case state when 'pending' then event end, case state when 'pending' then now() end, received_at, '{}'
		from idem_events where state not in ('done', 'discarded') on conflict do nothing`)
	s.Exec(`insert into idem_archive (event, received_at, body) select event, received_at, '{}'
		from idem_events where state in ('done', 'discarded') on conflict do nothing`)
}

// pruneOn runs Prune on a day of the database's clock.
func (s *app) pruneOn(p pruner, day string) int64 {
	s.Helper()
	s.setClock(day)
	n, err := p.Prune(s.Context())
	if err != nil {
		s.Errorf("on day %s: Prune = %d, %v", day, n, err)
	}
	return n
}

// setClock has the database's clock be ahead of the machine's, in an app of appWithClock.
func (s *app) setClock(ahead string) {
	s.Helper()
	s.Exec(`create or replace function now() returns timestamptz stable language sql as $$ select pg_catalog.now() + interval '` + ahead + `' $$`)
}

func newBodyOf(id string) string { return `{"id":"` + id + `","type":"new"}` }
