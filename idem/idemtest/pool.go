package idemtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/internal/postgres"
)

// Pool returns a pool on an empty schema of a real Postgres. Both are gone
// when the test ends.
//
// Without any Postgres the test fails, with a line that says how to get one; or
// it is skipped, where the environment variable IDEMTEST_SKIP_WITHOUT_POSTGRES
// is 1. A connection that the test does not give back to the pool fails it too.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), URL(t))
	if err != nil {
		t.Fatalf("idemtest: no pool for the test: %v", err)
	}
	t.Cleanup(func() {
		if n := closePool(pool, 15*time.Second); n > 0 {
			t.Errorf("idemtest: %d connections of the pool are still in use after the test: release them, and close rows and transactions", n)
		}
	})
	return pool
}

// URL is [Pool] as a connection string, for tests that open pools of their own
// or hand it to other processes. Sessions that are still open when the test
// ends are closed by the server.
func URL(t testing.TB) string {
	t.Helper()
	s, err := shared()
	switch {
	case postgres.IsAbsent(err) && skipsWithoutPostgres():
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	dsn, drop, err := s.Schema(context.Background(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return dsn
}

func skipsWithoutPostgres() bool {
	skips, _ := strconv.ParseBool(os.Getenv("IDEMTEST_SKIP_WITHOUT_POSTGRES"))
	return skips
}

// shared is the one server of this test process. It is not closed: it ends
// with the process.
var shared = sync.OnceValues(func() (*postgres.Server, error) {
	return postgres.Connect(context.Background())
})

// closePool waits a while for connections in use, and returns how many still
// are.
func closePool(pool *pgxpool.Pool, wait time.Duration) int32 {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
		return 0
	case <-time.After(wait):
		return pool.Stat().AcquiredConns()
	}
}

// Server is a running Postgres, with a schema to work in.
type Server struct {
	server *postgres.Server
	url    string
	close  func() error
}

// Start is [Pool] for programs: it finds or starts a Postgres as tests do, and
// makes a schema in it. The context bounds the start, not the server.
//
// Close the server at the end. A program that ends without doing so leaves
// nothing behind either, except its database on a server that it was given, which the next
// program drops.
func Start(ctx context.Context) (*Server, error) {
	s, err := postgres.Connect(ctx)
	if err != nil {
		return nil, err
	}
	url, drop, err := s.Schema(ctx, filepath.Base(os.Args[0]))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Server{s, url, sync.OnceValue(func() error { return errors.Join(drop(), s.Close()) })}, nil
}

// URL returns the connection string of the server. Its search_path is a new schema,
// so that nothing that is in the database already is touched.
func (s *Server) URL() string { return s.url }

// Origin names the Postgres for people: "PostgreSQL 15.8 from
// /usr/lib/postgresql/15/bin".
func (s *Server) Origin() string { return s.server.Origin() }

// Close removes the schema, and the database or server that was made for it.
// When it returns, they are gone.
func (s *Server) Close() error { return s.close() }
