package idemtest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// These tests are not parallel: DryRun replaces http.DefaultTransport.

// dryRunOf returns what DryRun says of a handler.
func dryRunOf(t *testing.T, h func(ctx context.Context, tx pgx.Tx, pool *pgxpool.Pool) error) string {
	t.Helper()
	source := func(pool *pgxpool.Pool) idem.Source {
		if _, err := pool.Exec(t.Context(), `create table effects (id text not null)`); err != nil {
			t.Error(err)
		}
		s := &charges{}
		idem.Handle(&s.Routes, "paid", func(ctx context.Context, tx pgx.Tx, c *charge) error {
			if _, err := tx.Exec(ctx, insertEffect, c.ID); err != nil {
				return err
			}
			return h(ctx, tx, pool)
		})
		return s
	}
	r := &recorder{TB: t}
	r.run(func() { idemtest.DryRun(r, source, []*http.Request{paid("evt_1")}) })
	return strings.Join(r.failures, "\n")
}

// invoices are somebody else's server, which counts what it is asked to do.
func invoices(t *testing.T) (server *httptest.Server, issued *int) {
	t.Helper()
	issued = new(int)
	server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *issued++ }))
	t.Cleanup(server.Close)
	return server, issued
}

func TestDryRunPassesAHandlerThatAsksOrWritesThroughItsTransaction(t *testing.T) {
	server, issued := invoices(t)
	says := dryRunOf(t, func(ctx context.Context, _ pgx.Tx, pool *pgxpool.Pool) error {
		if idem.IsDryRun(ctx) {
			return nil
		}
		_, err := http.Get(server.URL)
		return errors.Join(err, pool.Ping(ctx))
	})
	if says != "" || *issued != 0 {
		t.Errorf("%d invoices, %s", *issued, says)
	}
}

func TestDryRunFindsWhatIsNotRolledBack(t *testing.T) {
	server, issued := invoices(t)
	for why, c := range map[string]struct {
		handler func(ctx context.Context, tx pgx.Tx, pool *pgxpool.Pool) error
		says    string
	}{
		"http.Post": {
			func(context.Context, pgx.Tx, *pgxpool.Pool) error {
				_, err := http.Post(server.URL+"/invoices?key=secret", "text/plain", strings.NewReader("secret"))
				return err
			}, "the handler sends a POST to 127.0.0.1:",
		},
		"a client of its own, whose error is ignored": {
			func(ctx context.Context, _ pgx.Tx, _ *pgxpool.Pool) error {
				r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, nil)
				if err != nil {
					return err
				}
				_, _ = new(http.Client).Do(r)
				return nil
			}, "the handler sends a PUT to 127.0.0.1:",
		},
		"a statement through the pool": {
			func(ctx context.Context, _ pgx.Tx, pool *pgxpool.Pool) error {
				_, err := pool.Exec(ctx, insertEffect, "secret")
				return err
			}, `the handler executes "insert into effects values ($1)" on a connection of its own`,
		},
		"a batch through the pool": {
			func(ctx context.Context, _ pgx.Tx, pool *pgxpool.Pool) error {
				b := new(pgx.Batch)
				b.Queue(`select 1`)
				return pool.SendBatch(ctx, b).Close()
			}, `the handler executes "select 1" on a connection of its own`,
		},
		"copy through the pool": {
			func(ctx context.Context, _ pgx.Tx, pool *pgxpool.Pool) error {
				_, err := pool.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id"}, pgx.CopyFromRows([][]any{{"secret"}}))
				return err
			}, `the handler executes "copy \"effects\"" on a connection of its own`,
		},
		"a connection with the pool's configuration": {
			func(ctx context.Context, _ pgx.Tx, pool *pgxpool.Pool) error {
				conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
				if err != nil {
					return err
				}
				defer conn.Close(ctx)
				_, err = conn.Exec(ctx, `begin`)
				return err
			}, `the handler executes "begin" on a connection of its own`,
		},
		"a connection that nobody watches": {
			func(ctx context.Context, _ pgx.Tx, pool *pgxpool.Pool) error {
				conn, err := pgx.Connect(ctx, pool.Config().ConnString())
				if err != nil {
					return err
				}
				defer conn.Close(ctx)
				_, err = conn.Exec(ctx, `insert into effects values ('left')`)
				return err
			}, "left the table effects changed",
		},
		"it fails": {
			func(context.Context, pgx.Tx, *pgxpool.Pool) error { return errors.New("no such order") },
			"delivery 1 fails in a dry run: idem: dry run of paid evt_1: no such order",
		},
	} {
		t.Run(why, func(t *testing.T) {
			says := dryRunOf(t, c.handler)
			if !strings.Contains(says, c.says) || strings.Contains(says, "secret") || strings.Contains(says, "\n") {
				t.Errorf("it should say %q, once and without arguments:\n%s", c.says, says)
			}
		})
	}
	if *issued != 0 {
		t.Errorf("%d requests were sent", *issued)
	}
	if _, err := http.Get(server.URL); err != nil || *issued != 1 {
		t.Errorf("the shared transport is not put back: %v", err)
	}
}

func TestDryRunWantsAHandler(t *testing.T) {
	r := &recorder{TB: t}
	idemtest.URL(t)
	r.run(func() {
		idemtest.DryRun(r, func(*pgxpool.Pool) idem.Source { return &charges{} }, []*http.Request{paid("evt_1")})
	})
	if says := strings.Join(r.failures, "\n"); !strings.Contains(says, "delivery 1, paid, has no handler") {
		t.Error(says)
	}
}
