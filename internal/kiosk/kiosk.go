// Package kiosk is the small shop of those tests that show what is stored, find what is wrong with it, or
// change it: a provider of notes, and its tables.
package kiosk

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Note is the one event of the provider.
type Note struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Order string `json:"order"`
}

// Source is the provider, which delivers nothing over HTTP.
type Source struct {
	idem.Routes
	name string
}

// NewSource returns a provider of that name.
func NewSource(name string) *Source { return &Source{name: name} }

// Name returns the name of [NewSource].
func (s *Source) Name() string { return s.name }

// Open refuses every delivery.
func (s *Source) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, &idem.Refusal{Source: s.name, Reason: "none", Hint: "it receives nothing over HTTP"}
}

// Open returns a pool on the tables of package idem, in a schema of the test's own.
func Open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// Exec executes SQL, also while the test ends.
func Exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// KeepAlive has workers of sources be alive for a moment, which do nothing.
func KeepAlive(t testing.TB, pool *pgxpool.Pool, sources ...string) {
	t.Helper()
	Exec(t, pool, `
insert into idem_workers select row_number() over (), source, 'shop-1', 7, now(), now() from unnest($1::text[]) source
on conflict (id) do update set seen_at = now()`, sources)
}
