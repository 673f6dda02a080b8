package idemsql_test

import (
	"context"
	"database/sql"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemsql"
	"github.com/paghooks/paghooks/idem/idemtest"
)

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// inEachMode runs a test with a pool of each of pgx's modes, on a table of notes.
func inEachMode(t *testing.T, test func(*testing.T, *pgxpool.Pool)) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(idemtest.URL(t))
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			if err := idem.Migrate(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), `create table notes (id bigint generated always as identity, note text unique)`); err != nil {
				t.Fatal(err)
			}
			test(t, pool)
		})
	}
}

// deliver has an Inbox process one event with f, and returns the outcome.
func deliver(t *testing.T, pool *pgxpool.Pool, id string, f func(context.Context, *sql.DB) error) (idem.Outcome, error) {
	t.Helper()
	return deliverTx(t, pool, id, func(ctx context.Context, tx pgx.Tx) error {
		return idemsql.Run(ctx, tx, func(db *sql.DB) error { return f(ctx, db) })
	})
}

func deliverTx(t *testing.T, pool *pgxpool.Pool, id string, work func(context.Context, pgx.Tx) error) (idem.Outcome, error) {
	t.Helper()
	routes := &noteRoutes{work: work}
	p := idem.NewInbox(pool, routes)
	p.WorkFirst = true
	p.Logger = nil
	return p.Accept(t.Context(), idem.Event{ID: id, Type: "NOTE", Payload: []byte("{}")})
}

func notes(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `select note from notes order by id`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func insert(ctx context.Context, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, note string,
) error {
	_, err := db.ExecContext(ctx, `insert into notes (note) values ($1)`, note)
	return err
}

// inTx calls f with a DB on a plain transaction, which is rolled back.
func inTx(t *testing.T, pool *pgxpool.Pool, f func(context.Context, *sql.DB) error) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if err := idemsql.Run(t.Context(), tx, func(db *sql.DB) error { return f(t.Context(), db) }); err != nil {
		t.Fatal(err)
	}
}

// noteRoutes is a source with one handler.
type noteRoutes struct{ work idem.Work }

func (*noteRoutes) Name() string                          { return "notes" }
func (*noteRoutes) Ignores(string) bool                   { return false }
func (r *noteRoutes) Route(idem.Event) (idem.Work, error) { return r.work, nil }

// Open takes the body for the event's ID.
func (r *noteRoutes) Open(req *http.Request) (idem.Event, error) {
	body, err := idem.ReadBody(req)
	return idem.Event{ID: string(body), Type: "NOTE", Payload: body}, err
}
