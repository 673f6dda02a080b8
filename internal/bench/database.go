package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/internal/postgres"
)

// database is the Postgres that the implementations share. Each works in a schema of its own.
type database struct {
	url        string
	about      string // "PostgreSQL 15.8 from /usr/lib/postgresql/15/bin, fsync on"
	commit     time.Duration
	postmaster int               // its process here, or 0
	cluster    *postgres.Cluster // nil if it is not ours
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

// look reads what the numbers depend on: the version, fsync, and the median time of one commit alone.
func (d *database) look(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	d.postmaster = parentOfPostgres(conn.PgConn().PID())
	var fsync string
	if err := conn.QueryRow(ctx, `show fsync`).Scan(&fsync); err != nil {
		return err
	}
	d.about = "PostgreSQL " + conn.PgConn().ParameterStatus("server_version") + ", fsync " + fsync
	if _, err := conn.Exec(ctx, `create table paghooks_bench_commits (n int)`); err != nil {
		return err
	}
	took := make([]time.Duration, 51)
	for n := range took {
		start := time.Now()
		if _, err := conn.Exec(ctx, `insert into paghooks_bench_commits values ($1)`, n); err != nil {
			return err
		}
		took[n] = time.Since(start)
	}
	slices.Sort(took)
	d.commit = took[len(took)/2]
	_, err = conn.Exec(ctx, `drop table paghooks_bench_commits`)
	return err
}

// schema is one implementation's part of the database.
type schema struct {
	name  string
	pool  *pgxpool.Pool
	admin *pgxpool.Pool // of the bench itself, not over the wire
	wire  *wire
}

// tables has those that the implementations and their work need beside idem's and River's own.
const tables = `
create table orders (charge text primary key, payments bigint not null default 0, cents bigint not null default 0) with (fillfactor = 50);
create table processed (id text primary key, received_at timestamptz not null default now());
create table stored (id text primary key, state text not null default 'pending', received_at timestamptz not null default now(), body bytea not null);
create index on stored (received_at) where state = 'pending'`

// newSchema makes a schema with an order for each charge, and pools on it.
func (d *database) newSchema(ctx context.Context, mode string, e *events, c *config) (s *schema, err error) {
	s = &schema{name: "paghooks_bench_" + e.run + "_" + mode, wire: &wire{delay: c.rtt}}
	config, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["search_path"] = s.name
	ours := config.Copy()
	ours.MaxConns = 1
	if s.admin, err = pgxpool.NewWithConfig(ctx, ours); err != nil {
		return nil, err
	}
	config.MaxConns = int32(c.conns)
	config.ConnConfig.DialFunc = s.wire.dialer(config.ConnConfig.DialFunc)
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	_, err = s.admin.Exec(ctx, `create schema `+s.name+`; `+tables)
	if err == nil {
		_, err = s.admin.Exec(ctx, `insert into orders select $1 || n from generate_series(0, $2::int - 1) n`, "pay_"+e.run+"_", charges)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the schema %s: %w", s.name, err), s.drop(ctx))
	}
	return s, nil
}

func (s *schema) drop(ctx context.Context) error {
	s.pool.Close()
	defer s.admin.Close()
	if _, err := s.admin.Exec(context.WithoutCancel(ctx), `drop schema if exists `+s.name+` cascade`); err != nil {
		return fmt.Errorf("dropping the schema %s: %w", s.name, err)
	}
	return nil
}

// wire lies between an implementation and Postgres: it counts round trips, and makes each take longer.
type wire struct {
	delay time.Duration
	trips atomic.Int64
}

func (w *wire) dialer(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &tripConn{Conn: conn, wire: w}, err
	}
}

// tripConn is a connection on the wire. A round trip is a write, in one piece or several, until the
// next read.
type tripConn struct {
	net.Conn
	wire *wire
	sent atomic.Bool
}

func (c *tripConn) Write(p []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(p)
}

func (c *tripConn) Read(p []byte) (int, error) {
	if c.sent.Swap(false) {
		c.wire.trips.Add(1)
		if c.wire.delay > 0 {
			time.Sleep(c.wire.delay)
		}
	}
	return c.Conn.Read(p)
}
