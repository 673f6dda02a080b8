package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/testkit"
)

// tables are those of package idem, in which an event is written as a line:
//
//	a o1 pending due claimed
//
// is event a of entity o1, pending, due, and claimed by workers that are alive. Each is a
// second later than the one before it, by the provider's time. Behind the state are:
//
//	due, later  it is due, or in an hour; without either it waits, or is no worker's
//	free        it is in no lane
//	claimed     by workers that are alive; dead: by workers that are not
//	old         it arrived two days ago
//
// Done and discarded events have no body.
type tables struct {
	*testing.T
	*pgxpool.Pool
}

const alive, ours = 7, 8 // workers

// first is the provider's time of the first line.
var first = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func with(t *testing.T, lines ...string) tables {
	t.Helper()
	d := tables{t, idemtest.Pool(t)}
	if err := idem.Migrate(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	d.exec(`delete from idem_payloads`)
	d.exec(`insert into idem_workers values ($1, 's', 'host', 1, now(), now()), ($2, 's', 'host', 2, now(), now())`, alive, ours)
	for n, line := range lines {
		words := strings.Fields(line)
		e := event(words[0], words[1])
		state, flags := words[2], strings.Join(words[3:], " ")
		has := func(flag string) bool { return strings.Contains(flags, flag) }
		worker := map[bool]any{true: alive, false: nil}[has("claimed")]
		if has("dead") {
			worker = 99
		}
		received := map[bool]string{true: "2 days", false: "0 days"}[has("old")]
		d.exec(`insert into idem_events (event, type, key, state, received_at, starts, claimed_by) values ($1, 'paid', $2, $3, now() - $4::interval, $5, $6)`,
			e.RowKey(), e.Key, state, received, map[bool]int{true: 1, false: 0}[worker != nil], worker)
		if state == store.Done || state == store.Discarded {
			continue
		}
		due := map[bool]any{true: "0 hours", false: nil}[has("due")]
		if has("later") {
			due = "1 hour"
		}
		lane := map[bool]any{true: nil, false: e.Lane()}[has("free")]
		d.exec(`insert into idem_payloads (event, source, lane, due_at, occurred_at, received_at, body)
			values ($1, 's', $2, now() + $3::interval, $4, now() - $5::interval, '{}')`,
			e.RowKey(), lane, due, first.Add(time.Duration(n)*time.Second), received)
	}
	return d
}

// event is an event of an entity, whose time is that of no line.
func event(id, key string) store.Event {
	return store.Event{Source: "s", ID: id, Type: "paid", Key: key, Payload: []byte("{}"), OccurredAt: first.Add(time.Hour)}
}

func (d tables) exec(sql string, args ...any) {
	d.Helper()
	if _, err := d.Exec(d.Context(), sql, args...); err != nil {
		d.Fatal(err)
	}
}

// want compares the events with lines.
func (d tables) want(lines ...string) {
	d.Helper()
	rows, _ := d.Query(d.Context(), `
select substring(e.event from '[^/]*$') || ' ' || e.key || ' ' || e.state
	|| case when p.due_at <= now() then ' due' when p.due_at is not null then ' later' else '' end
	|| case when p.event is not null and p.lane is null then ' free' else '' end
	|| case claimed_by when 7 then ' claimed' when 8 then ' ours' when 99 then ' dead' else '' end
from idem_events e left join idem_payloads p using (event) order by 1`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.Fatal(err)
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		d.Errorf("events (-want +got):\n%s", diff)
	}
	var bodies int
	if err := d.QueryRow(d.Context(), `select count(*) from idem_payloads p join idem_events e using (event) where state in ('done', 'discarded')`).Scan(&bodies); err != nil || bodies > 0 {
		d.Errorf("%d events that are done or discarded have a body, %v", bodies, err)
	}
}

// locked calls f while another transaction has locked an event's row.
func (d tables) locked(id string, f func()) {
	d.Helper()
	tx, err := d.Begin(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(d.Context(), `select from idem_events where event = $1 for update`, event(id, "").RowKey()); err != nil {
		d.Fatal(err)
	}
	f()
}

// inTx executes statements in a transaction, and commits.
func (d tables) inTx(f func(context.Context, pgx.Tx) error) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), time.Minute) // who waits for a lock waits for ever
	defer cancel()
	if err := pgx.BeginFunc(ctx, d, func(tx pgx.Tx) error { return f(ctx, tx) }); err != nil {
		d.Error(err)
	}
}

// during executes a statement that reads a view, and calls meanwhile once it has begun: it sees what was there before. The
// view's query calls begun.
func (d tables) during(view string, statement, meanwhile func()) {
	d.Helper()
	const lock = `(hashtextextended(current_schema(), 0))`
	d.exec(`create function begun() returns boolean volatile language plpgsql as $$ begin perform pg_advisory_xact_lock_shared` + lock + `; return true; end $$`)
	d.exec(`create view ` + view)
	var ended sync.WaitGroup
	defer ended.Wait()
	d.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock`+lock); err != nil {
			return err
		}
		ended.Go(statement)
		for waits := false; !waits; {
			const ask = `select exists (select from pg_locks where locktype = 'advisory' and not granted and pid in (
				select pid from pg_stat_activity where application_name = current_setting('application_name')))`
			if err := d.QueryRow(ctx, ask).Scan(&waits); err != nil { // a transaction would see the sessions of its first look only
				return err
			}
		}
		meanwhile()
		return nil
	})
}

// marked executes a marking statement, and returns whether it marked: as callers must, it
// rolls back if not.
func (d tables) marked(queue func(*pgx.Batch, *pgtx.Session)) bool {
	d.Helper()
	tx, err := d.Begin(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	var s pgtx.Session
	b := &pgx.Batch{}
	queue(b, &s)
	if err := tx.SendBatch(d.Context(), b).Close(); err != nil {
		d.Fatal(err)
	}
	if s.PID == 0 {
		return false
	}
	if err := tx.Commit(d.Context()); err != nil {
		d.Fatal(err)
	}
	return true
}

// each runs a test of each name.
func each[C any](t *testing.T, cases map[string]C, test func(*testing.T, C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

func ids(claims []store.Claim) string {
	var all []string
	for _, c := range claims {
		all = append(all, fmt.Sprint(c.ID, c.Crashes))
	}
	return strings.Join(all, " ")
}

// sortedLines are lines as want reads them.
func sortedLines(lines []string) []string {
	lines = slices.Clone(lines)
	slices.Sort(lines)
	return lines
}

// withDone are lines where event n is done.
func withDone(lines []string) []string {
	lines = sortedLines(lines)
	for i, line := range lines {
		if strings.HasPrefix(line, "n ") {
			lines[i] = strings.Join(strings.Fields(line)[:2], " ") + " done"
		}
	}
	return lines
}

func TestSourcesAreListedOnceWhateverTheirNamesBeginWith(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	if got, err := store.Sources(t.Context(), pool); len(got) != 0 || err != nil {
		t.Errorf("Sources = %q, %v, want none", got, err)
	}
	_, err := pool.Exec(t.Context(), `insert into idem_events (event, type, key, state)
		select source || '/' || scope || '/' || n, '', '', 'done'
		from unnest(array['asaas', 'asaas-2', 'asaas2', 'a', 'zelta pay']) source, unnest(array['', 'shop']) scope, generate_series(1, 3) n`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.Sources(t.Context(), pool)
	if diff := cmp.Diff([]string{"a", "asaas", "asaas-2", "asaas2", "zelta pay"}, got); diff != "" || err != nil {
		t.Errorf("Sources: %v (-want +got):\n%s", err, diff)
	}
}
