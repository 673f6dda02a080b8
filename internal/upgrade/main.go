// Upgrade freezes the tables of a version with events in every state, for the test
// that migrates them and goes on:
//
//	go run ./internal/upgrade v0.1.0
//
// It runs an inbox of the code as it is on a Postgres for tests, and
// writes what they leave there into internal/upgrade/testdata: SQL that makes the
// tables, and the rows. Commit the file with the version. It is never changed after
// that.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

var version = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

func main() {
	if len(os.Args) != 2 || !version.MatchString(os.Args[1]) {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/upgrade VERSION, in the root's folder; a version is v0.1.0")
		os.Exit(2)
	}
	if err := run(context.Background(), filepath.Join("internal", "upgrade", "testdata", os.Args[1]+".sql")); err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

// run writes the file.
func run(ctx context.Context, file string) error {
	server, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	text, err := freeze(ctx, server.URL())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// freeze returns SQL that makes the tables of this version, with events in every state.
func freeze(ctx context.Context, url string) (text string, err error) {
	pool, err := open(ctx, url)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		return "", err
	}
	err = leave(ctx, pool, func() (err error) {
		text, err = dump(ctx, pool)
		return err
	})
	return text, err
}

// open opens a pool whose sessions write times in UTC.
func open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	return pgxpool.NewWithConfig(ctx, config)
}
