package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Check examines the database behind pool, and the events and settings of the
// receivers, and returns its findings, the worst first. It changes nothing: what
// it tries is rolled back.
//
// It returns an error if ctx ends, or if the database does not answer: every wait for it
// has an end, also where ctx has none. A check that cannot be made, or that takes longer
// than a minute, is a finding.
func Check(ctx context.Context, pool *pgxpool.Pool, receivers ...idem.Receiver) ([]Finding, error) {
	return defaults.examine(ctx, pool, receivers)
}

// Finding is something that is wrong, or worth knowing.
type Finding = check.Finding

// Severity ranks a finding.
type Severity = check.Severity

// The severities of findings.
const (
	Error   = check.Error   // events are lost, doubled or stuck, or will be
	Warning = check.Warning // somebody should look at it soon
	Info    = check.Info    // good to know, or not visible to the role
)

// limits are the thresholds of the findings.
type limits struct {
	now func() time.Time // the clock of this machine

	version     int           // of Postgres, the oldest
	skew        time.Duration // of the clocks
	transaction time.Duration // age of a transaction, and of a prepared one
	lag         int64         // of a replica and of a slot, in bytes
	dead        int64         // rows of a table
	unpruned    time.Duration // beyond Retention, and since the last prune
	redelivery  time.Duration // in which a provider may deliver an event again
	silence     time.Duration // of a client that died, until Postgres notices
	used        float64       // share of the server's connections
	statement   time.Duration // until Postgres cancels one
	lock        time.Duration // that the tables may be locked
	blocking    time.Duration // age of a transaction that others wait for
	check       time.Duration // that one may take
	answer      time.Duration // that the database may take for the shortest one
}

var defaults = limits{
	now:         time.Now,
	version:     130000,
	skew:        2 * time.Second,
	transaction: 5 * time.Minute,
	lag:         64 << 20,
	dead:        10_000,
	unpruned:    3 * 24 * time.Hour,
	redelivery:  store.Redelivery,
	silence:     5 * time.Minute,
	used:        0.9,
	statement:   time.Second,
	lock:        3 * time.Second,
	blocking:    10 * time.Second,
	check:       time.Minute,
	answer:      10 * time.Second,
}

// examine is one of the checks.
type examine struct {
	name  string
	needs need
	run   func(*examination, context.Context) ([]Finding, error)
}

// need says what must be there for a check to run.
type need int

const (
	session need = iota // a transaction of its own
	tables              // that, and tables that nobody keeps locked
	pool                // the pool, and no transaction: it takes connections itself
)

// checks are all of them, in the order in which they run.
var checks = []examine{
	{"locks", pool, (*examination).locks},
	{"version", session, asked(version)},
	{"writable", session, asked(writable)},
	{"statement timeout", pool, (*examination).statementTimeout},
	{"pooler", pool, (*examination).pooler},
	{"keepalives", session, asked(keepalives)},
	{"clock", session, (*examination).clock},
	{"connections", session, asked(connections)},
	{"durability", session, asked(durability)},
	{"replication", session, asked(replication)},
	{"replication", session, (*examination).awaited},
	{"replication", session, (*examination).watched},
	{"old snapshots", session, asked(snapshots)},
	{"rights", session, asked(rights)},
	{"access", session, asked(access)},
	{"schemas", session, (*examination).schemas},
	{"migrations", session, (*examination).migrations},
	{"columns", session, (*examination).columns},
	{"view", session, (*examination).views},
	{"indexes", session, (*examination).indexes},
	{"order", session, (*examination).order},
	{"charges", session, asked(charges)},
	{"triggers", tables, (*examination).triggers},
	{"plans", tables, asked(plans)},
	{"autovacuum", session, asked(autovacuum)},
	{"retention", session, (*examination).retention},
	{"events", tables, (*examination).events},
	{"prune", tables, (*examination).prune},
	{"stuck", tables, (*examination).stuck},
	{"conflicts", tables, (*examination).conflicts},
	{"scopes", tables, (*examination).scopes},
}

// first are the checks whose findings come before those of others: what keeps everything from working, and then what
// a person who is called at night asks first, causes first.
var first = []string{"connection", "schemas", "migrations", "writable", "replication", "locks", "triggers", "rights"}

// Sort sorts findings: the worst first, and among these the causes before what follows from them, the events and the
// program before the database.
func Sort(findings []Finding) {
	place := func(f Finding) int {
		if n := slices.Index(first, f.Check); n >= 0 {
			return n
		}
		if slices.ContainsFunc(checks, func(c examine) bool { return c.name == f.Check && c.name != "scopes" }) {
			return len(first) + len(diagnosis.Checks) + 1
		}
		return len(first) + diagnosis.Place(f.Check)
	}
	order := []Severity{Error, Warning, Info}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)), cmp.Compare(place(a), place(b)))
	})
}

func (l limits) examine(ctx context.Context, pool *pgxpool.Pool, receivers []idem.Receiver) ([]Finding, error) {
	e := &examination{limits: l, pool: pool}
	for _, r := range receivers {
		_, isOutbox := r.(*outbox.Outbox)
		o := operator.New(r, "doctor") // it only reads
		e.sources = append(e.sources, source{o.SourceName(), o.Inbox.Retention.Events, o.Inbox.Timeout, isOutbox})
	}
	there, err := e.hasTables(ctx)
	if err != nil {
		return nil, fmt.Errorf("doctor: the database cannot be asked: %w", err)
	}
	var all []Finding
	for _, c := range checks {
		if c.needs == tables && (!there || e.locked) {
			continue
		}
		findings, err := e.run(ctx, c)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("doctor: %s: %w", c.name, context.Cause(ctx))
		}
		if errors.Is(err, context.DeadlineExceeded) {
			if _, lost := e.hasTables(ctx); lost != nil {
				return nil, fmt.Errorf("doctor: %s: the database does not answer any more: %w", c.name, lost)
			}
		}
		if err != nil && !e.explains(err) {
			findings = append(findings, Finding{
				Severity: Warning, Problem: "this could not be checked", Evidence: err.Error(),
				Remedy: "see whether the role may read the tables, and whether the connection works",
			})
		}
		for _, f := range findings {
			f.Check = cmp.Or(f.Check, c.name)
			all = append(all, f)
		}
	}
	Sort(all)
	return all, nil
}

// source is one whose events are examined.
type source struct {
	name      string
	retention time.Duration
	timeout   time.Duration
	isOutbox  bool // no provider delivers its events
}

// examination holds the data of the checks.
type examination struct {
	limits
	pool    *pgxpool.Pool
	db      unprepared // of the check that runs; none where it needs the pool
	sources []source
	locked  bool // whether another session keeps the tables locked
	damaged bool // whether columns or indexes are not as the migrations made them
}

// hasTables reports whether the tables exist. A database that works answers that at once.
func (e *examination) hasTables(ctx context.Context) (there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.answer)
	defer cancel()
	err = e.within(ctx, func() (err error) {
		there, err = one[bool](ctx, e, `select to_regclass('idem_events') is not null and to_regclass('idem_payloads') is not null`)
		return err
	})
	return there, err
}

// explains reports whether another finding says why a check could not be made: that the tables were altered.
func (e *examination) explains(err error) bool {
	return e.damaged && slices.Contains([]string{"42P01", "42P10", "42703", "42804", "42883", "23502"}, pgtx.SQLState(err))
}

// run makes a check. The statements have time-outs at the server, which do not end them while its process is
// stopped or while the network loses the answer: hence the deadline here.
func (e *examination) run(ctx context.Context, c examine) (found []Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.check)
	defer cancel()
	if c.needs == pool {
		return c.run(e, ctx)
	}
	err = e.within(ctx, func() (err error) {
		found, err = c.run(e, ctx)
		return err
	})
	return found, err
}

// within calls f with a transaction as the database, and rolls it back. No statement of it waits long, for a lock
// or for the disk. It tries again if a statement_timeout of some milliseconds cancels the begin.
func (e *examination) within(ctx context.Context, f func() error) (err error) {
	const begin = `begin; set local statement_timeout = '20s'; set local lock_timeout = '3s'; set local jit = off`
	for range 10 {
		if e.db.Tx, err = e.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin}); !pgtx.Canceled(err) {
			break
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = e.db.Rollback(ctx) }()
	return f()
}

// unprepared is a transaction whose statements work behind any pooler, because they prepare nothing.
type unprepared struct{ pgx.Tx }

const mode = pgx.QueryExecModeExec

func (u unprepared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return u.Tx.Query(ctx, sql, append([]any{mode}, args...)...)
}

func (u unprepared) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return u.Tx.QueryRow(ctx, sql, append([]any{mode}, args...)...)
}

// one returns the value of a query of one row.
func one[V any](ctx context.Context, e *examination, sql string, args ...any) (v V, err error) {
	err = e.db.QueryRow(ctx, sql, args...).Scan(&v)
	return v, err
}

// all returns the rows of a query, by the places of their columns.
func all[R any](ctx context.Context, e *examination, sql string, args ...any) ([]R, error) {
	rows, err := e.db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[R])
}

// asked is a check that asks for its findings in SQL: the severity, problem, evidence, remedy and command of each.
// Its parameters are limits.
func asked(sql string) func(*examination, context.Context) ([]Finding, error) {
	return func(e *examination, ctx context.Context) ([]Finding, error) {
		rows, err := e.db.Query(ctx, `select * from (`+sql+`) f (severity, problem, evidence, remedy, command)`, pgx.NamedArgs{
			"version": e.version, "transaction": e.transaction, "lag": e.lag, "dead": e.dead, "silence": e.silence, "used": e.used,
			"pool": e.pool.Config().MaxConns,
		})
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByNameLax[Finding])
	}
}
