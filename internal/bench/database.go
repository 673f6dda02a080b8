package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/internal/postgres"
)

// database is the Postgres that the implementations share. Each works in a
// schema of its own.
type database struct {
	url     string
	about   databaseAbout
	cluster *postgres.Cluster // nil if it is not ours
}

// databaseAbout describes it to readers of the numbers.
type databaseAbout struct {
	Origin string  `json:"origin"` // "PostgreSQL 15.8 from /usr/lib/postgresql/15/bin"
	Fsync  string  `json:"fsync"`  // the setting
	Commit float64 `json:"commit_ms"`

	postmaster int // its process here, or 0
}

// openDatabase uses the Postgres that url names, or else that of IDEMTEST_DATABASE_URL,
// or else starts one with commits that wait for the disk.
func openDatabase(ctx context.Context, url string) (*database, error) {
	d := &database{url: cmp.Or(url, os.Getenv("IDEMTEST_DATABASE_URL"))}
	if d.url == "" {
		d.cluster = &postgres.Cluster{Durable: true}
		if err := d.cluster.Start(ctx); err != nil {
			return nil, fmt.Errorf("starting Postgres: name one with -postgres, or: %w", err)
		}
		d.url = d.cluster.URL()
	}
	if err := d.look(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("looking at Postgres: %w", err), d.close())
	}
	return d, nil
}

func (d *database) close() error {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.Close()
}

// look reads the settings that the numbers depend on.
func (d *database) look(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	d.about.Origin = "PostgreSQL " + conn.PgConn().ParameterStatus("server_version")
	if d.cluster != nil {
		d.about.Origin = d.cluster.Origin()
	}
	d.about.postmaster = parentOfPostgres(conn.PgConn().PID())
	if err := conn.QueryRow(ctx, `show fsync`).Scan(&d.about.Fsync); err != nil {
		return err
	}
	d.about.Commit, err = commitTime(ctx, conn)
	return err
}

// commitTime is the median time of one committed INSERT when nothing else
// happens, in milliseconds.
func commitTime(ctx context.Context, conn *pgx.Conn) (float64, error) {
	schema := schemaPrefix + newRun()
	if _, err := conn.Exec(ctx, `create schema `+schema+` create table commits (n int)`); err != nil {
		return 0, err
	}
	var took histogram
	for n := range 51 {
		start := time.Now()
		if _, err := conn.Exec(ctx, `insert into `+schema+`.commits values ($1)`, n); err != nil {
			return 0, err
		}
		took.add(time.Since(start))
	}
	_, err := conn.Exec(ctx, `drop schema `+schema+` cascade`)
	return milliseconds(took.quantile(0.5)), err
}

const schemaPrefix = "paghooks_bench_"

// tables has the tables that the implementations and their work need beside idem's own.
const tables = `
create table orders (charge text primary key, payments bigint not null default 0, cents bigint not null default 0) with (fillfactor = 50);
create table processed (id text primary key, received_at timestamptz not null default now());
create table stored (id text primary key, state text not null default 'pending', received_at timestamptz not null default now(), body bytea not null);
create index on stored (received_at) where state = 'pending'`

// schema is one implementation's part of the database.
type schema struct {
	name string
	pool *pgxpool.Pool
	wire *wire
}

// newSchema makes a schema with an order for each charge, and a pool on it.
func (d *database) newSchema(ctx context.Context, e *events, mode string, c *config) (*schema, error) {
	s := &schema{name: schemaPrefix + e.run + "_" + mode, wire: &wire{delay: c.rtt}}
	pool, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	pool.MaxConns = int32(c.conns)
	pool.ConnConfig.RuntimeParams["search_path"] = s.name
	pool.ConnConfig.DialFunc = s.wire.dialer(pool.ConnConfig.DialFunc)
	if s.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, e); err != nil {
		return nil, errors.Join(fmt.Errorf("making the schema %s: %w", s.name, err), s.drop(ctx))
	}
	return s, nil
}

func (s *schema) fill(ctx context.Context, e *events) error {
	if _, err := s.pool.Exec(ctx, `create schema `+s.name+`; `+tables); err != nil {
		return err
	}
	_, err := s.pool.Exec(ctx, `insert into orders select $1 || n from generate_series(0, $2::int - 1) n`, e.prefix(), charges)
	return err
}

func (s *schema) drop(ctx context.Context) error {
	_, err := s.pool.Exec(context.WithoutCancel(ctx), `drop schema if exists `+s.name+` cascade`)
	s.pool.Close()
	if err != nil {
		return fmt.Errorf("dropping the schema %s: %w", s.name, err)
	}
	return nil
}
