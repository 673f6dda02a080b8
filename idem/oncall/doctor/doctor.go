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
	"github.com/paghooks/paghooks/idem/internal/pgtx"
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
type Finding struct {
	Check    string   `json:"check"` // the name of the check that found it: "migrations", "old snapshots"
	Severity Severity `json:"severity"`
	Source   string   `json:"source,omitempty"` // the source of its events; "" for the database
	Problem  string   `json:"problem"`
	Evidence string   `json:"evidence"` // the measured values
	Remedy   string   `json:"remedy"`   // the steps to take; "" for none
}

// Severity ranks a finding.
type Severity string

const (
	Error   Severity = "error"   // events are lost, doubled or stuck, or will be
	Warning Severity = "warning" // somebody should look at it soon
	Info    Severity = "info"    // good to know, or not visible to the role
)

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

// limits are the thresholds of the findings.
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
	statement   time.Duration // until Postgres cancels one
	check       time.Duration // that one may take
	answer      time.Duration // that the database may take for the shortest one
	features    []feature     // the statements that are tried
}

// feature is something of Postgres that its relatives may lack. It is tried on the
// tables in a transaction that is rolled back.
type feature struct {
	name     string
	try      string
	severity Severity
	without  string // the parts that do not work
	remedy   string
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
	statement:   time.Second,
	check:       time.Minute,
	answer:      10 * time.Second,
	features:    features,
}

// checks are all of them, in the order in which they run.
var checks = []struct {
	name string
	run  func(*examination, context.Context) ([]Finding, error)
}{
	{"version", (*examination).version},
	{"writable", (*examination).writable},
	{"statement timeout", (*examination).statementTimeout},
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
	{"columns", (*examination).columns},
	{"view", (*examination).views},
	{"indexes", (*examination).indexes},
	{"features", (*examination).features},
	{"plans", (*examination).plans},
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
var needTables = []string{"features", "plans", "workers", "stuck", "parked", "blocked", "conflicts", "scopes"}

func (l limits) examine(ctx context.Context, pool *pgxpool.Pool, receivers []idem.Receiver) ([]Finding, error) {
	e := &examination{limits: l, pool: pool, db: unprepared{pool}}
	for _, r := range receivers {
		o := operator.New(r, "doctor")
		e.operators = append(e.operators, o)
		if _, ok := r.(*outbox.Outbox); ok {
			e.outboxes = append(e.outboxes, o.SourceName())
		}
	}
	there, err := e.hasTables(ctx)
	if err != nil {
		return nil, fmt.Errorf("doctor: the database cannot be asked: %w", err)
	}
	var all []Finding
	for _, c := range checks {
		if !there && slices.Contains(needTables, c.name) {
			continue
		}
		findings, err := e.run(ctx, c.run)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("doctor: %s: %w", c.name, context.Cause(ctx))
		}
		if errors.Is(err, context.DeadlineExceeded) {
			if _, lost := e.hasTables(ctx); lost != nil {
				return nil, fmt.Errorf("doctor: %s: the database does not answer any more: %w", c.name, lost)
			}
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

// examination holds the data of the checks.
type examination struct {
	limits
	pool      *pgxpool.Pool
	db        unprepared           // the same
	operators []*operator.Operator // one of each receiver; they only read
	outboxes  []string             // the sources of events that no provider delivers
	damaged   bool                 // whether columns or indexes are not as the migrations made them
}

// hasTables reports whether the tables exist. A database that works answers that at once.
func (e *examination) hasTables(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.answer)
	defer cancel()
	return one[bool](ctx, e, `select to_regclass('idem_events') is not null and to_regclass('idem_payloads') is not null`)
}

// run makes a check. The statements have time-outs at the server, which do not end them while its process is
// stopped or while the network loses the answer: hence the deadline here.
func (e *examination) run(ctx context.Context, check func(*examination, context.Context) ([]Finding, error)) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.check)
	defer cancel()
	return check(e, ctx)
}

// unprepared is the pool for statements that work behind any pooler, because they prepare
// nothing, and under any statement_timeout: each has a transaction of its own.
type unprepared struct{ *pgxpool.Pool }

const mode = pgx.QueryExecModeExec

// lookTime is the time that Postgres may look for the answer to one question.
const lookTime = `set local statement_timeout = '30s'`

func (u unprepared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	tx, err := u.begin(ctx, "begin read only")
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, append([]any{mode}, args...)...)
	if err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return &looking{rows, func() { _ = tx.Rollback(ctx) }}, nil
}

// Begin begins a transaction that may write, under the same limit.
func (u unprepared) Begin(ctx context.Context) (pgx.Tx, error) { return u.begin(ctx, "begin") }

// begin begins a transaction. It tries again if a statement_timeout of some milliseconds cancels that.
func (u unprepared) begin(ctx context.Context, begin string) (tx pgx.Tx, err error) {
	for range 10 {
		if tx, err = u.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + "; " + lookTime}); pgtx.SQLState(err) != canceled {
			break
		}
	}
	return tx, err
}

func (u unprepared) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := u.Query(ctx, sql, args...)
	return oneRow{rows, err}
}

// canceled is the SQLSTATE of a statement that took too long.
const canceled = "57014"

// looking is the rows of a query. Closing the rows ends their transaction.
type looking struct {
	pgx.Rows
	end func()
}

func (l *looking) Close() {
	l.Rows.Close()
	l.end()
}

func (l *looking) Next() bool {
	more := l.Rows.Next()
	if !more {
		l.Close()
	}
	return more
}

// oneRow is the first of some rows.
type oneRow struct {
	rows pgx.Rows
	err  error
}

func (o oneRow) Scan(dest ...any) error {
	if o.err != nil {
		return o.err
	}
	defer o.rows.Close()
	if !o.rows.Next() {
		return cmp.Or(o.rows.Err(), pgx.ErrNoRows)
	}
	if err := o.rows.Scan(dest...); err != nil {
		return err
	}
	o.rows.Close()
	return o.rows.Err()
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

// plural returns a number with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
