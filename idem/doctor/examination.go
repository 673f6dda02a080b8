package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/operator"
)

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

// examination holds the data of the checks.
type examination struct {
	limits
	pool      *pgxpool.Pool
	db        unprepared           // the same
	operators []*operator.Operator // one of each receiver; they only read
	outboxes  []string             // the sources of events that no provider delivers
	damaged   bool                 // whether columns or indexes are not as the migrations made them
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

// begin begins a transaction, as often as a statement_timeout of some milliseconds ends that.
func (u unprepared) begin(ctx context.Context, begin string) (tx pgx.Tx, err error) {
	for range 10 {
		if tx, err = u.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + "; " + lookTime}); pgtx.SQLState(err) != canceled {
			break
		}
	}
	return tx, err
}

// canceled is the SQLSTATE of a statement that took too long.
const canceled = "57014"

func (u unprepared) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := u.Query(ctx, sql, args...)
	return oneRow{rows, err}
}

// looking is the rows of a transaction that ends with them.
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

// plural is a number with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
