package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

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

// Connect returns the server that the environment names, or starts one, which ends with
// the process. The context bounds the start.
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

// withSchema returns the connection string with the schema as its search_path,
// and as its name among the server's sessions.
//
// The path travels in options, which psql and most drivers know, and not as a
// search_path parameter, which only some do.
func withSchema(dsn, schema string) (string, error) {
	before, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
	options := strings.TrimSpace(before.RuntimeParams["options"] + " -csearch_path=" + schema)
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		dsn = extendURL(dsn, options, schema)
	} else {
		dsn = extendWords(dsn, options, schema)
	}
	after, err := pgconn.ParseConfig(dsn)
	if err != nil || after.RuntimeParams["options"] != options || !sameDatabase(before, after) {
		return "", errors.New("the database's connection string is not understood: write it as postgres://user:password@host:port/database, its parts percent-encoded")
	}
	return dsn, nil
}

func sameDatabase(a, b *pgconn.Config) bool {
	return a.Host == b.Host && a.Port == b.Port && a.Database == b.Database && a.User == b.User && a.Password == b.Password
}

func extendURL(dsn, options, schema string) string {
	base, query, _ := strings.Cut(dsn, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	q.Del("search_path")
	q.Set("options", options)
	q.Set("application_name", schema)
	return base + "?" + encode(q)
}

func extendWords(dsn, options, schema string) string {
	extended := dsn + " options='" + quoted.Replace(options) + "' application_name=" + schema
	if strings.Contains(dsn, "search_path") {
		extended += " search_path=" + schema // the one that is there would win over the options
	}
	return extended
}

var quoted = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// encode encodes the query of a connection string, in which + is a plus.
func encode(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

const image = "postgres:17-alpine"

// inContainer runs as the container's first process. The container is gone
// when it ends, which is when stdin ends, which is when this process ends.
const inContainer = "docker-entrypoint.sh postgres -c max_connections=200 -c fsync=off -c full_page_writes=off >&2 & read -r _"

// startDocker starts Postgres in a container, and fetches its image the first
// time.
func startDocker(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, absent("not on PATH")
	}
	name := uniqueName("docker")
	cmd := exec.Command(docker, "run", "--rm", "-i", "--name", name, "-p", "127.0.0.1::5432",
		"-e", "POSTGRES_HOST_AUTH_METHOD=trust", image, "sh", "-c", inContainer)
	detach(cmd)
	l, err := newLeash(cmd)
	if err != nil {
		return nil, absent(err.Error())
	}
	s := &Server{close: l.close}
	if err := s.await(ctx, docker, name, l); err != nil {
		l.close()
		return nil, err
	}
	return s, nil
}

// await tries to connect until that succeeds, or the container is gone.
func (s *Server) await(ctx context.Context, docker, container string, l *leash) error {
	for retry := time.NewTicker(100 * time.Millisecond); ; {
		if err := s.try(ctx, docker, container); err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-l.stdout:
			return absent(l.stderr.String())
		case <-ctx.Done():
			return fmt.Errorf("idemtest: the container of %s does not answer: %w", image, context.Cause(ctx))
		}
	}
}

func (s *Server) try(ctx context.Context, docker, container string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	address, err := exec.CommandContext(ctx, docker, "port", container, "5432/tcp").Output()
	if err != nil {
		return err
	}
	s.url = "postgres://postgres@" + strings.TrimSpace(string(address)) + "/postgres?sslmode=disable"
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	s.origin = product(conn) + " from Docker's " + image
	return conn.Close(ctx)
}
