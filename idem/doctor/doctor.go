package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// Severity is how bad a finding is.
type Severity string

const (
	Error   Severity = "error"   // events are lost, doubled or stuck, or will be
	Warning Severity = "warning" // somebody should look at it soon
	Info    Severity = "info"    // good to know, or not visible to the role
)

// Finding is something that is wrong, or worth knowing.
type Finding struct {
	Check    string   `json:"check"` // the name of the check that found it: "migrations", "old snapshots"
	Severity Severity `json:"severity"`
	Source   string   `json:"source,omitempty"` // whose events it is about; "" for the database
	Problem  string   `json:"problem"`
	Evidence string   `json:"evidence"` // what was measured
	Remedy   string   `json:"remedy"`   // what to do; "" for nothing
}

// String returns the finding in one line.
func (f Finding) String() string {
	text := string(f.Severity) + ": " + f.Problem
	if f.Evidence != "" {
		text += " (" + f.Evidence + ")"
	}
	if f.Remedy != "" {
		text += ": " + f.Remedy
	}
	return text
}

// Check examines the database behind pool, and the events and settings of the
// receivers, and returns what it found, the worst first. It changes nothing: what
// it tries is rolled back.
//
// It returns an error if the database does not answer or ctx ends. A check that
// cannot be made is a finding.
func Check(ctx context.Context, pool *pgxpool.Pool, receivers ...idem.Receiver) ([]Finding, error) {
	return defaults.check(ctx, pool, receivers)
}

// limits are from when on something is a finding.
type limits struct {
	now func() time.Time // the clock of this machine

	version     int           // of Postgres, the oldest
	skew        time.Duration // of the clocks
	transaction time.Duration // age of a transaction, and of a prepared one
	lag         int64         // of a replica and of a slot, in bytes
	dead        int64         // rows of a table
	notTaken    time.Duration // age of an event that is due
	redelivery  time.Duration // in which a provider may deliver an event again
	silence     time.Duration // of a client that died, until Postgres notices
	used        float64       // share of the server's connections
	features    []feature     // what is tried
}

var defaults = limits{
	now:         time.Now,
	version:     130000,
	skew:        2 * time.Second,
	transaction: 5 * time.Minute,
	lag:         64 << 20,
	dead:        10_000,
	notTaken:    time.Minute,
	redelivery:  31 * 24 * time.Hour,
	silence:     5 * time.Minute,
	used:        0.9,
	features:    features,
}

// examination is what the checks get.
type examination struct {
	limits
	pool      *pgxpool.Pool
	db        unprepared           // the same
	operators []*operator.Operator // one of each receiver; they only read
	outboxes  []string             // the sources of those whose events no provider delivers
}

// checks are all of them, in the order in which they run.
var checks = []struct {
	name string
	run  func(*examination, context.Context) ([]Finding, error)
}{
	{"version", (*examination).version},
	{"writable", (*examination).writable},
	{"pooler", (*examination).pooler},
	{"keepalives", (*examination).keepalives},
	{"clock", (*examination).clock},
	{"connections", (*examination).connections},
	{"durability", (*examination).durability},
	{"replication", (*examination).replication},
	{"old snapshots", (*examination).snapshots},
	{"rights", (*examination).rights},
	{"schemas", (*examination).schemas},
	{"migrations", (*examination).migrations},
	{"indexes", (*examination).indexes},
	{"features", (*examination).features},
	{"autovacuum", (*examination).autovacuum},
	{"retention", (*examination).retention},
	{"workers", (*examination).workers},
	{"stuck", (*examination).stuck},
	{"parked", (*examination).parked},
	{"blocked", (*examination).blocked},
	{"conflicts", (*examination).conflicts},
	{"scopes", (*examination).scopes},
}

// needTables are the checks that make no sense without the tables.
var needTables = []string{"features", "workers", "stuck", "parked", "blocked", "conflicts", "scopes"}

func (l limits) check(ctx context.Context, pool *pgxpool.Pool, receivers []idem.Receiver) ([]Finding, error) {
	e := &examination{limits: l, pool: pool, db: unprepared{pool}}
	for _, r := range receivers {
		o := operator.New(r, "doctor")
		e.operators = append(e.operators, o)
		if _, ok := r.(*idem.Outbox); ok {
			e.outboxes = append(e.outboxes, o.SourceName())
		}
	}
	there, err := one[bool](ctx, e, `select to_regclass('idem_events') is not null and to_regclass('idem_payloads') is not null`)
	if err != nil {
		return nil, fmt.Errorf("doctor: the database cannot be asked: %w", err)
	}
	var all []Finding
	for _, c := range checks {
		if !there && slices.Contains(needTables, c.name) {
			continue
		}
		findings, err := c.run(e, ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("doctor: %s: %w", c.name, context.Cause(ctx))
		}
		if err != nil {
			findings = append(findings, Finding{
				Severity: Warning, Problem: "this could not be checked", Evidence: err.Error(),
				Remedy: "see whether the role may read the tables, and whether the connection works",
			})
		}
		for _, f := range findings {
			f.Check = c.name
			all = append(all, f)
		}
	}
	order := []Severity{Error, Warning, Info}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	return all, nil
}

// unprepared is the pool for statements that work behind any pooler: they prepare
// nothing.
type unprepared struct{ *pgxpool.Pool }

const mode = pgx.QueryExecModeExec

func (u unprepared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return u.Pool.Query(ctx, sql, append([]any{mode}, args...)...)
}

func (u unprepared) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return u.Pool.QueryRow(ctx, sql, append([]any{mode}, args...)...)
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

// plural is a number with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
