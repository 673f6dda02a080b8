package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/postgres"
)

// pair is a Postgres with a replica.
type pair struct {
	primary, replica *postgres.Cluster
	url              string // of both: the one that takes writes is connected to
}

// Nothing keeps an effect from being there twice: doubled ones are to be seen.
const tables = `
create table effects (place bigserial, event text not null, payment text not null, step int not null);
create index on effects (event)`

func startPair(ctx context.Context, c config) (p *pair, err error) {
	p = &pair{primary: &postgres.Cluster{Durable: c.durable}}
	if err := p.primary.Start(ctx); err != nil {
		return nil, err
	}
	if err := p.fill(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.replica, err = p.primary.Replica(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if c.standby == "sync" {
		if err := p.waitForReplica(ctx); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	if p.url, err = eitherOf(p.primary.URL(), p.replica.URL()); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (c config) about() string {
	if c.standby == "sync" {
		return "for which commits wait"
	}
	return "for which commits do not wait"
}

func (p *pair) fill(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, p.primary.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, tables)
	return err
}

// waitForReplica has commits wait for the replica. The one that is promoted does
// not wait for any: it has none.
func (p *pair) waitForReplica(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.primary.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range []string{`alter system set synchronous_standby_names = '*'`, `select pg_reload_conf()`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	for there := false; !there; {
		const ask = `select exists (select from pg_stat_replication where sync_state = 'sync')`
		if err := conn.QueryRow(ctx, ask).Scan(&there); err != nil {
			return err
		}
	}
	return nil
}

// eitherOf is a connection string with two hosts, as applications have it where
// there is a failover.
func eitherOf(first, second string) (string, error) {
	a, err := url.Parse(first)
	if err != nil {
		return "", err
	}
	b, err := url.Parse(second)
	if err != nil {
		return "", err
	}
	return "postgres://postgres@/postgres?" + url.Values{
		"host":                 {a.Query().Get("host") + "," + b.Query().Get("host")},
		"port":                 {"5432,5432"},
		"target_session_attrs": {"read-write"},
		"connect_timeout":      {"2"},
		"pool_max_conns":       {"8"},
	}.Encode(), nil
}

// promote kills the primary and promotes the replica. It returns when the primary
// was killed.
func (p *pair) promote(ctx context.Context) (killed time.Time, err error) {
	killed = time.Now()
	return killed, errors.Join(p.primary.Kill(ctx), p.replica.Promote(ctx))
}

func (p *pair) close() (err error) {
	if p.replica != nil {
		err = p.replica.Close()
	}
	return errors.Join(err, p.primary.Close())
}
