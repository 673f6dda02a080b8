package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	features    []feature     // what is tried
}

// feature is something of Postgres that its relatives may lack. It is tried on the
// tables in a transaction that is rolled back.
type feature struct {
	name     string
	try      string
	severity Severity
	without  string // what does not work
	remedy   string
}

// examination is what the checks get.
type examination struct {
	limits
	pool      *pgxpool.Pool
	db        unprepared           // the same
	operators []*operator.Operator // one of each receiver; they only read
	outboxes  []string             // the sources of those whose events no provider delivers
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
