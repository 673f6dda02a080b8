package idem_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func (s *shop) runMigration(file string) {
	s.Helper()
	statements, err := idem.Migrations.ReadFile("migrations/" + file)
	if err != nil {
		s.Fatal(err)
	}
	s.exec(string(statements))
}

// definition is what the database knows of the tables: columns, indexes,
// constraints and storage.
func (s *shop) definition() []string {
	s.Helper()
	return queryOne[[]string](s, `select array_agg(line order by line) from (
		select format('%s.%s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod), attcollation::regcollation,
			attnotnull) as line from pg_attribute
		where attrelid in ('idem_events'::regclass, 'idem_payloads'::regclass) and attnum > 0 and not attisdropped
		union all select regexp_replace(pg_get_indexdef(indexrelid), ' ON \S+\.', ' ON ') from pg_index
		where indrelid in ('idem_events'::regclass, 'idem_payloads'::regclass)
		union all select format('%s with %s', oid::regclass, reloptions) from pg_class
		where oid in ('idem_events'::regclass, 'idem_payloads'::regclass)) lines`)
}

// firstVersion is a database as the first version of this package left it, with
// an event of each state that it knew.
func firstVersion(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, pool: idemtest.Pool(t)}
	s.runMigration("00001_events.sql")
	s.exec(`create table idem_migrations (version integer primary key, applied_at timestamptz not null default now());
		insert into idem_migrations (version) values (1)`)
	s.exec(`insert into idem_events (event, type, key, state, received_at, attempts, last_error) values
		('notes//done', 'paid', 'o1', 'done', '2026-11-01', 0, null),
		('notes//kept', 'paid', 'o1', 'done', '2026-11-01', 0, null),
		('notes//retrying', 'paid', 'o1', 'retrying', '2026-11-02', 2, 'no such order'),
		('notes//unhandled', 'new', 'o1', 'unhandled', '2026-11-03', 0, null),
		('notes/shop-1/failed', 'paid', '', 'parked', '2026-11-04', 10, 'no such order')`)
	s.exec(`insert into idem_payloads (event, done, occurred_at, body)
		select event, state = 'done', received_at, convert_to(format('{"id":"%s","type":"%s","order":"%s"}', split_part(event, '/', 3), type, key), 'UTF8')
		from idem_events where event <> 'notes//done'`)
	return s
}

func TestMigrationOfAUsedDatabaseKeepsEveryEvent(t *testing.T) {
	t.Parallel()
	first := firstVersion(t)
	const rows = `select array_agg(line order by line) from (
		select concat_ws('|', event, type, key, state, received_at, attempts, last_error) as line from idem_events
		union all select concat_ws('|', event, done, occurred_at, body) from idem_payloads) lines`
	want := queryOne[[]string](first, rows)
	s := openShop(t, first.pool) // it calls Migrate
	if diff := cmp.Diff(want, queryOne[[]string](s, rows)); diff != "" {
		t.Error("rows (-want +got):\n" + diff)
	}
	if diff := cmp.Diff([]int32{1, 2}, queryOne[[]int32](s, `select array_agg(version order by version) from idem_migrations`)); diff != "" {
		t.Error("versions (-want +got):\n" + diff)
	}

	s.deploy(func(n *notes) {
		idem.Handle(&n.Routes, "paid", pay)
		idem.Handle(&n.Routes, "new", pay)
	})
	o := newOffice(s, s.pool)
	stats, err := o.Stats(t.Context())
	got := []int64{stats.Retrying.Events, stats.Unhandled.Events, stats.Parked.Events, stats.Pending.Events, stats.BlockedKeys}
	if diff := cmp.Diff([]int64{1, 1, 1, 0, 0}, got); diff != "" || err != nil {
		t.Error("Stats (-want +got):\n"+diff, err)
	}
	for _, e := range []idem.Event{booking("done", "o1"), booking("kept", "o1")} {
		if outcome, err := o.Accept(t.Context(), e); outcome != idem.Duplicate || err != nil {
			t.Errorf("Accept of %s = %s, %v, want duplicate", e.ID, outcome, err)
		}
	}
	o.queue(booking("retrying", "o1"))                                 // an inbox takes it,
	o.wantRequeued(s.pool, idem.Filter{IDs: []string{"unhandled"}}, 1) // workers do it,
	s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})              // or it is replayed
	o.work(2)
	s.wantEffects(3)
	if n := queryOne[int](s, `select count(*) from idem_events where state = 'done'`); n != 5 {
		t.Errorf("%d events of 5 are done", n)
	}
	s.wantPayload("kept", `{"id":"kept","type":"paid","order":"o1"}`)
}

func TestMigratingAgainByHandChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := newOffice(s, s.pool)
	o.queue(booking("e1", "o1"))
	s.stock(1, 50)
	definition, contents := s.definition(), s.contents()
	for range 2 {
		s.runMigration("00001_events.sql")
		s.runMigration("00002_inbox.sql")
	}
	if diff := cmp.Diff(definition, s.definition()); diff != "" {
		t.Error("tables (-want +got):\n" + diff)
	}
	s.wantContents(contents)

	byHand := &shop{T: t, pool: idemtest.Pool(t)} // without Migrate at all
	byHand.runMigration("00001_events.sql")
	byHand.runMigration("00002_inbox.sql")
	if diff := cmp.Diff(definition, byHand.definition()); diff != "" {
		t.Error("tables made by hand (-want +got):\n" + diff)
	}
	if diff := cmp.Diff(definition, openShop(t, firstVersion(t).pool).definition()); diff != "" {
		t.Error("tables of a used database (-want +got):\n" + diff)
	}
}

// A vacuum that waits for a fifth of ten million rows comes once a month.
func TestTablesAreVacuumedInTime(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for table, want := range map[string][]string{
		"idem_events": {
			"autovacuum_analyze_scale_factor=0.02", "autovacuum_vacuum_insert_scale_factor=0.02",
			"autovacuum_vacuum_scale_factor=0.02", "fillfactor=90",
		},
		"idem_payloads": {"autovacuum_vacuum_scale_factor=0.02"},
	} {
		got := queryOne[[]string](s, `select reloptions from pg_class where oid = $1::text::regclass`, table)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has the settings %q, want %q", table, got, want)
		}
	}
}

// A pending event changes state three times. None of them may touch an index
// of the table: that is what the room in its pages is for.
func TestStatesChangeWithoutTouchingAnIndex(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const indexed = `select array_agg(attname::text order by attname) from pg_attribute a join pg_index i on i.indrelid = a.attrelid
		where a.attrelid = 'idem_events'::regclass and a.attnum = any (i.indkey)`
	if diff := cmp.Diff([]string{"event"}, queryOne[[]string](s, indexed)); diff != "" {
		t.Error("indexed columns (-want +got):\n" + diff)
	}
}

// Postgres refuses to delete from a published table whose rows have no identity.
func TestEventsOfPublishedTablesAreWorked(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(pay)
	o := newOffice(s, s.pool)
	publication := queryOne[string](s, `select quote_ident('of ' || current_schema())`)
	s.exec(`create publication ` + publication + ` for table idem_events, idem_payloads`)
	t.Cleanup(func() {
		if _, err := s.pool.Exec(context.Background(), `drop publication `+publication); err != nil {
			t.Error(err)
		}
	})
	o.queue(booking("e1", "o1"), booking("e2", "o1"))
	o.work(1)
	o.KeepPayloads = true
	o.work(1)
	if _, err := o.Prune(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantState("e1", idem.StateDone)
	s.wantState("e2", idem.StateDone)
}
