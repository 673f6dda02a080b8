package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Server is a running Postgres.
type Server struct {
	url, origin string
	admin       *pgxpool.Pool // makes and drops the schemas
	close       func() error
}

// Start finds or starts a Postgres, and makes a schema in it. The context bounds the
// start, not the server. Close the server at the end.
func Start(ctx context.Context) (*Server, error) {
	s, err := Connect(ctx)
	if err != nil {
		return nil, err
	}
	dsn, drop, err := s.Schema(ctx, filepath.Base(os.Args[0]))
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	end := func() error {
		err := drop()
		s.admin.Close()
		return errors.Join(err, s.close())
	}
	return &Server{url: dsn, origin: s.origin, close: sync.OnceValue(end)}, nil
}

// URL returns the connection string of the server. After [Start] its search_path is
// a new schema.
func (s *Server) URL() string { return s.url }

// Origin names the Postgres for people: "PostgreSQL 15.8 from
// /usr/lib/postgresql/15/bin".
func (s *Server) Origin() string { return s.origin }

// Close removes the schema of [Start], and stops the server if it was started for
// this. When it returns, they are gone.
func (s *Server) Close() error { return s.close() }

// Connect returns the server that the environment names, or starts one. It has no
// schema, and it ends with the process.
func Connect(ctx context.Context) (*Server, error) {
	s, err := pick(ctx)
	if err != nil {
		return nil, err
	}
	if s.admin, err = pgxpool.New(ctx, s.url); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// variable names the database for tests. DATABASE_URL is not looked at: it may be the
// one of an application.
const variable = "IDEMTEST_DATABASE_URL"

func pick(ctx context.Context) (*Server, error) {
	if dsn := os.Getenv(variable); dsn != "" {
		return given(ctx, dsn)
	}
	var reasons []any
	for _, start := range []func(context.Context) (*Server, error){startCluster, startDocker} {
		s, err := start(ctx)
		reason, ok := errors.AsType[absent](err)
		if !ok {
			return s, err
		}
		reasons = append(reasons, reason)
	}
	return nil, absent(fmt.Sprintf("idemtest: no Postgres here: set "+variable+", or install PostgreSQL, "+
		"or install npm (which fetches it), or start Docker (%v; Docker: %v); "+
		"or skip tests that need one with IDEMTEST_SKIP_WITHOUT_POSTGRES=1", reasons...))
}

func given(ctx context.Context, dsn string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, patience) // a host that does not answer
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("idemtest: %s is set but cannot be used: correct it, or unset it to have a Postgres started: %w", variable, err)
	}
	defer conn.Close(ctx)
	return &Server{url: dsn, origin: product(conn) + " at " + variable, close: func() error { return nil }}, nil
}

func startCluster(ctx context.Context) (*Server, error) {
	c := new(Cluster)
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	return &Server{url: c.URL(), origin: c.Origin(), close: c.Close}, nil
}

// product is the name and version of the server at the other end.
func product(conn *pgx.Conn) string {
	v, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return "PostgreSQL " + v
}
