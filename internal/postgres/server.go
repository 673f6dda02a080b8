package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Server is a running Postgres.
type Server struct {
	url, origin string
	admin       *pgxpool.Pool // makes and drops the schemas
	close       func() error
}

// URL returns the connection string of the server.
func (s *Server) URL() string { return s.url }

// Origin names the Postgres for people: "PostgreSQL 15.8 from
// /usr/lib/postgresql/15/bin".
func (s *Server) Origin() string { return s.origin }

// Close stops the server if it was started for this. When it returns, it is gone.
func (s *Server) Close() error {
	s.admin.Close()
	return s.close()
}

// Connect returns the server that the environment names, with a database of this program's
// own, or starts one, which ends with the process. The context bounds the start.
func Connect(ctx context.Context) (*Server, error) {
	if dsn := os.Getenv(Variable); dsn != "" {
		return given(ctx, dsn)
	}
	return ownServer(ctx, new(Cluster))
}

// Variable names the database for tests. DATABASE_URL is not looked at: it may be the
// one of an application.
const Variable = "IDEMTEST_DATABASE_URL"

// Share starts a server for the many programs of a test run, each of which has its URL as
// [Variable]. It ends with the process. The context bounds the start.
func Share(ctx context.Context) (*Server, error) {
	return ownServer(ctx, &Cluster{Settings: map[string]string{"max_connections": "1000"}})
}

func ownServer(ctx context.Context, c *Cluster) (*Server, error) {
	s, err := clusterOrContainer(ctx, c)
	if err != nil {
		return nil, err
	}
	if s.admin, err = pgxpool.New(ctx, s.url); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func clusterOrContainer(ctx context.Context, c *Cluster) (*Server, error) {
	err := c.Start(ctx)
	if err == nil {
		return &Server{url: c.URL(), origin: c.Origin(), close: c.Close}, nil
	}
	if !IsAbsent(err) {
		return nil, err
	}
	s, errDocker := startDocker(ctx)
	if !IsAbsent(errDocker) {
		return s, errDocker
	}
	reason, _ := errors.AsType[absent](err)
	return nil, absent(fmt.Sprintf("idemtest: no Postgres here: set "+Variable+", or install PostgreSQL, "+
		"or install npm (which fetches it), or start Docker (%v; Docker: %v); "+
		"or skip tests that need one with IDEMTEST_SKIP_WITHOUT_POSTGRES=1", reason, errDocker))
}

// product returns the name and version of a server.
func product(conn *pgx.Conn) string {
	v, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return "PostgreSQL " + v
}

// Schema makes a schema named after of. It returns the connection string that
// leads there, and a function that drops it.
func (s *Server) Schema(ctx context.Context, of string) (dsn string, drop func() error, err error) {
	name := uniqueName(of)
	if dsn, err = withSchema(s.url, name); err != nil {
		return "", nil, fmt.Errorf("idemtest: %w", err)
	}
	if _, err := s.admin.Exec(ctx, "create schema "+name); err != nil {
		return "", nil, fmt.Errorf("idemtest: no schema for the test: %w", err)
	}
	return dsn, func() error { return s.drop(name) }, nil
}

// drop removes a schema with all that is in it, and before that the sessions
// of the test that are still open and could hold locks.
func (s *Server) drop(schema string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	drop := "select pg_terminate_backend(pid) from pg_stat_activity where application_name = '" + schema + "';" +
		"drop schema if exists " + schema + " cascade"
	_, err := s.admin.Exec(ctx, drop)
	var pgErr *pgconn.PgError
	for range 5 { // a process of the test that is ending holds locks
		if !errors.As(err, &pgErr) || pgErr.Code != "40P01" {
			break
		}
		_, err = s.admin.Exec(ctx, drop)
	}
	if err != nil {
		return fmt.Errorf("idemtest: schema %s stays behind: drop it by hand: %w", schema, err)
	}
	return nil
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// uniqueName makes a name that needs no quotes, says where it came from, and
// is used once: idemtest_testpaid_k3x9….
func uniqueName(of string) string {
	of = notName.ReplaceAllString(strings.ToLower(of), "_")
	return "idemtest_" + of[:min(len(of), 30)] + "_" + strings.ToLower(rand.Text()[:12])
}
