package doctor

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/internal/testkit"
)

const mayAll = `grant select, insert, update, delete on all tables in schema SCHEMA to ROLE`

// What is wrong in a schema, in its events, or for a session.
func TestEachCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check    string
		why      string
		make     func(*patient)
		severity Severity
		problem  string
		evidence string
	}{
		{
			"version", "Postgres 12 and older are not tested with; here the limit is moved",
			func(p *patient) { p.limits.version = 990000 },
			Error, "this Postgres is older", "version ",
		},
		{
			"writable", "cloud databases are set to this when their disk is full",
			func(p *patient) { p.session("default_transaction_read_only", "on") },
			Error, "transactions are read-only by default", "default_transaction_read_only is on",
		},
		{
			"pooler", "prepared statements are on another session the next time",
			func(p *patient) { p.pooled(3) },
			Warning, "a pooler gives each transaction another session, and pgx keeps prepared statements", "query mode cache statement",
		},
		{
			"pooler", "it is set up right, and only inboxes need to know",
			func(p *patient) {
				p.pooled(3)
				p.config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
			},
			Info, "a pooler gives each transaction another session", "answered by",
		},
		{
			"pooler", "with one connection the mode cannot be told",
			func(p *patient) { p.pooled(3); p.config.MaxConns = 1 },
			Info, "its mode could not be determined", "told process",
		},
		{
			"keepalives", "it is Postgres's default",
			func(p *patient) { p.session("idle_in_transaction_session_timeout", "0") },
			Info, "a transaction may stay idle without limit", "idle_in_transaction_session_timeout is 0",
		},
		{
			"clock", "this machine is behind",
			func(p *patient) { p.limits.now = func() time.Time { return time.Now().Add(-90 * time.Minute) } },
			Warning, "the clocks of this machine and of the database differ", "by 1h",
		},
		{
			"clock", "this machine is ahead",
			func(p *patient) { p.limits.now = func() time.Time { return time.Now().Add(90 * time.Minute) } },
			Warning, "the clocks of this machine and of the database differ", "by 1h",
		},
		{
			"connections", "the pool is larger than max_connections",
			func(p *patient) { p.config.MaxConns = 100_000 },
			Warning, "the pool may open more connections than Postgres grants", "100000, of ",
		},
		{
			"connections", "they are almost all in use; here the limit is moved",
			func(p *patient) { p.limits.used = 0 },
			Warning, "the connections are almost all in use", " of the server",
		},
		{
			"replication", "statistics of other roles need a right",
			func(p *patient) { p.role(mayAll) },
			Info, "this role may not see the lag of replicas", "no member of pg_read_all_stats",
		},
		{
			"old snapshots", "statistics of other roles need a right",
			func(p *patient) { p.role(mayAll); p.Session(`select 1`) },
			Info, "this role may not see the transactions of other roles", "no member of pg_read_all_stats",
		},
		{
			"migrations", "another tool has not applied all of them",
			func(p *patient) { p.Exec(`drop table idem_migrations, idem_audit_events cascade`) },
			Error, "the tables lack migrations of this version", "migrations/00001_idem.sql in schema idemtest_",
		},
		{
			"migrations", "the program is older than what is deployed",
			func(p *patient) { p.Exec(`insert into idem_migrations (version) values (99)`) },
			Warning, "the tables are newer than this program", "migration 99, this program knows 1",
		},
		{
			"plans", "they look like rubbish to who does not know them",
			func(p *patient) { p.Exec(`delete from idem_payloads where event in ('//1', '//300')`) },
			Warning, "the rows that keep plans good are gone", "idem_payloads has 298 rows of no source, not 300",
		},
		{
			"autovacuum", "dead rows pile up; here the limit is moved",
			func(p *patient) {
				p.limits.dead = 100
				p.Exec(`alter table idem_events set (autovacuum_enabled = off);
					insert into idem_events (event, type, key, state) select 'notes//' || n, '', '', 'done' from generate_series(1, 500) n;
					delete from idem_events where event <> 'notes//1'`)
				p.Until(`select n_dead_tup >= 499 from pg_stat_user_tables where relid = 'idem_events'::regclass`)
			},
			Warning, "autovacuum is behind", " dead rows and ",
		},
		{
			"workers", "one works, and there is too much for it",
			func(p *patient) {
				p.event("e1", "k", "pending", "1 hour")
				p.event("e2", "k2", "pending", "1 hour")
				p.Exec(`insert into idem_workers values (1, 'notes', 'shop-1', 7, now(), now() + interval '10 s')`)
			},
			Error, "workers run and do not keep up", "the first has been due for 1 h",
		},
		{
			"workers", "one works, and is a little behind",
			func(p *patient) {
				p.event("e1", "k", "pending", "2 minutes")
				p.Exec(`insert into idem_workers values (1, 'notes', 'shop-1', 7, now(), now() + interval '10 s')`)
			},
			Warning, "the workers are behind", "the first has been due for 2 min",
		},
		{
			"prune", "it has failed for a week, and nobody saw it",
			func(p *patient) {
				p.Exec(`insert into idem_events (event, type, key, state, received_at) values ('notes//e1', '', '', 'done', now() - interval '60 days');
					insert into idem_prunes (source, runs, ran_at, days) values ('notes', 9, now() - interval '7 days', '{}')`)
			},
			Warning, "nothing forgets events that are older than Retention", "the last prune ran 7 days ago, an event is 60 days old, and Retention is 45 days",
		},
		{
			"charges", "somebody dropped one, and its events fail",
			func(p *patient) {
				p.Exec(`create table asaas_charges_migrations (); create table asaas_charges (); create table asaas_charges_since (); create table asaas_charges_runs ();
					create table asaas_statement_days ()`)
			},
			Error, "a table of charges is gone", "asaas_statement",
		},
		{
			"connections", "a handler has it, and the rest waits",
			func(p *patient) { p.config.MaxConns = 1 },
			Warning, "the pool has one connection", "pool_max_conns is 1",
		},
		{
			"conflicts", "two accounts share an address",
			func(p *patient) {
				p.Exec(`insert into idem_events (event, type, key, state, conflict_at) values ('notes//e1', '', '', 'done', now())`)
			},
			Warning, "events came again with another body", "1 event, the latest is e1",
		},
		{
			"scopes", "an account got a scope",
			func(p *patient) {
				p.Exec(`insert into idem_events (event, type, key, state) values ('notes//e1', '', '', 'done'), ('notes/shop/e2', '', '', 'done')`)
			},
			Warning, "events are stored with and without a scope", `-account ""`,
		},
		{
			"schemas", "Migrate of an earlier version made tables in it",
			func(p *patient) {
				p.Exec(`insert into idem_events (event, type, key, state) values ('notes//e1', '', '', 'done')`)
				if err := idem.MigrateSchema(p.Context(), p.Pool, p.earlierSchema()); err != nil {
					p.Fatal(err)
				}
			},
			Error, "the first set of tables along the search_path has no event", "_own has none",
		},
		{
			"schemas", "a schema per tenant, beside the tables of others",
			func(p *patient) {
				own := p.earlierSchema()
				if err := idem.MigrateSchema(p.Context(), p.Pool, own); err != nil {
					p.Fatal(err)
				}
				p.Exec(`insert into ` + own + `.idem_events (event, type, key, state) values ('notes//e1', '', '', 'done');
					insert into idem_events (event, type, key, state) values ('others//e1', '', '', 'done')`)
			},
			Info, "there are several sets of tables", "_own, idemtest_",
		},
		{
			"schemas", "it was migrated, and has processed since",
			func(p *patient) {
				own := p.earlierSchema()
				if err := idem.MigrateSchema(p.Context(), p.Pool, own); err != nil {
					p.Fatal(err)
				}
				p.Exec(`insert into ` + own + `.idem_events (event, type, key, state) values ('notes//e2', '', '', 'done');
					insert into idem_events (event, type, key, state) values ('notes//e1', '', '', 'done')`)
			},
			Error, "its events are in two sets of tables", "is hidden",
		},
		{
			"schemas", "tables that somebody made are later in it, and wait for whoever changes it",
			func(p *patient) {
				if err := idem.MigrateSchema(p.Context(), p.Pool, p.earlierSchema()); err != nil {
					p.Fatal(err)
				}
				parts := strings.Split(p.config.ConnConfig.RuntimeParams["search_path"], ", ")
				p.session("search_path", parts[1]+", "+parts[0])
				p.Exec(`insert into idem_events (event, type, key, state) values ('notes//e1', '', '', 'done')`)
			},
			Error, "a later set of tables along the search_path has no event", "_own has none",
		},
		{
			"events", "a check that cannot be made says so, and the others go on",
			func(p *patient) { p.role(`grant select on idem_events, idem_migrations to ROLE`) },
			Warning, "this could not be checked", "permission denied for table idem_",
		},
	} {
		t.Run(c.check+", "+c.why, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, idemtest.URL(t))
			p.session("idle_in_transaction_session_timeout", "60000")
			for _, f := range p.check() {
				if f.Check == c.check && strings.Contains(f.Problem, c.problem) {
					t.Errorf("it finds this before anything is wrong: %s", f)
				}
			}
			c.make(p)
			p.want(c.check, c.severity, c.problem, c.evidence)
		})
	}
}

// goose, tern and atlas record elsewhere what they have applied.
func TestMigrationsByAnotherToolAreNotMissing(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	p.Exec(`drop table idem_migrations`)
	for _, f := range p.check() {
		if f.Check == "migrations" {
			t.Errorf("it finds %s", f)
		}
	}
	files, err := fs.Glob(idem.Migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if marks[file].column == "" {
			t.Errorf("%s: say in marks how to see that it is applied", file)
		}
	}
}

// A table in partitions is as good as a plain one.
func TestPartitionsAreWell(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	sql, err := os.ReadFile("../../../docs/partitioned.sql")
	if err != nil {
		t.Fatal(err)
	}
	p.Exec(string(sql))
	for _, f := range p.check() {
		if f.Check == "indexes" || f.Check == "migrations" || f.Check == "rights" {
			t.Errorf("it finds %s", f)
		}
	}
	p.Exec(`alter table idem_events_2 set (autovacuum_enabled = off)`)
	p.want("autovacuum", Warning, "nothing removes the dead rows of a table", "autovacuum_enabled is off for idem_events_2")
}

func TestTheWorstComesFirstAndEveryFindingIsComplete(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	p.session("idle_in_transaction_session_timeout", "0")
	p.event("e1", "k", "parked", "")
	p.event("e2", "k2", "pending", "1 hour")
	findings := p.check()
	order := []Severity{Error, Warning, Info}
	if !slices.IsSortedFunc(findings, func(a, b Finding) int { return slices.Index(order, a.Severity) - slices.Index(order, b.Severity) }) {
		t.Error("the order is " + printed(findings))
	}
	for _, f := range findings {
		if f.Check == "" || f.Problem == "" || f.Evidence == "" || f.Remedy+f.Command == "" && f.Severity != Info {
			t.Errorf("it is not complete: %s", f)
		}
		_, events := diagnosis.Of(f.Check)
		if events = events || slices.ContainsFunc(checks, func(c examine) bool { return c.name == f.Check && c.needs == tables }); events != (f.Source == "notes") {
			t.Errorf("%s is of source %q", f, f.Source)
		}
	}
}

func TestADatabaseWithoutTheTablesHasOneError(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	findings, err := Check(t.Context(), pool, idem.NewInbox(pool, testkit.NewSource("notes")))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Check == "migrations" && f.Severity == Error {
			return
		}
		if f.Severity == Error && f.Check != "durability" {
			t.Errorf("it finds %s", f)
		}
	}
	t.Error("it does not find that the migrations are missing: " + printed(findings))
}

func TestADatabaseThatDoesNotAnswerIsAnError(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://u:hunter2@127.0.0.1:1/shop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	findings, err := Check(t.Context(), pool)
	if err == nil || findings != nil || !strings.Contains(err.Error(), "doctor: the database cannot be asked: ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Check = %v, %v", findings, err)
	}
}

// A replay parks them again, and their bodies may be all that is left of a payment.
func TestBodiesThatNameNoEventAreListedAndNotReplayed(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	source := testkit.NewSource("notes")
	idem.Handle(&source.Routes, "paid", func(context.Context, pgx.Tx, *struct{ N int }) error { return nil })
	inbox := idem.NewInbox(p.Pool, source)
	inbox.WorkFirst, inbox.Logger = true, nil
	accept := func(e idem.Event) {
		if outcome, err := inbox.Accept(t.Context(), e); outcome != idem.Parked || err != nil {
			t.Fatalf("it is %s, %v", outcome, err)
		}
	}
	parked := func() Finding {
		for _, f := range p.check() {
			if f.Check == "parked" {
				return f
			}
		}
		t.Fatal("it finds nothing parked")
		return Finding{}
	}
	accept(idem.Event{Payload: []byte(`null`)})
	accept(idem.Event{Payload: []byte(`null`)})
	if f := parked(); f.Command != "idem list -source notes -type paghooks.unreadable" || !strings.Contains(f.Evidence, "paghooks.unreadable 2") ||
		!strings.Contains(f.Remedy, "pass bodies on unchanged") {
		t.Errorf("it finds %+v", f)
	}
	accept(idem.Event{ID: "e1", Type: "paid", Payload: []byte(`{"n":"x"}`)})
	if f := parked(); f.Command != "idem replay -source notes -state parked" || !strings.HasPrefix(f.Remedy, "for the 2 of type paghooks.unreadable: ") {
		t.Errorf("it finds %+v", f)
	}
}
