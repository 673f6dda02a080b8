package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

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
