package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Replica starts another cluster that follows this one by streaming replication,
// and takes reads only until it is promoted. It has the same fields, but not the settings that
// ALTER SYSTEM has set, and stays when this one is crashed or closed: close it
// too. The context bounds the start.
//
// Its data is copied between a [Cluster.Crash] of this one and its next start, which end
// all connections.
//
// It lags behind, as replicas do. [Cluster.CatchUp] waits for it; for commits
// that wait for it set synchronous_standby_names to '*' with ALTER SYSTEM. To
// have it miss all that comes next, empty its primary_conninfo in the same way.
func (c *Cluster) Replica(ctx context.Context) (*Cluster, error) {
	if !c.up {
		return nil, errors.New("idemtest: the cluster does not run: start it before its replica")
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r := &Cluster{Durable: c.Durable, Settings: maps.Clone(c.Settings)}
	if err := r.follow(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("idemtest: replica: %w", err), r.Close())
	}
	return r, nil
}

// Promote makes a replica a cluster of its own, which takes writes. Rows that it has
// not received by then it lacks.
func (c *Cluster) Promote(ctx context.Context) error {
	var done bool
	err := c.ask(ctx, &done, `select pg_promote(true, 300)`)
	for range 5 {
		// Replaying the primary's last records may cancel a statement.
		if canceled, ok := errors.AsType[*pgconn.PgError](err); !ok || canceled.Code != "40001" {
			break
		}
		err = c.ask(ctx, &done, `select case when pg_is_in_recovery() then pg_promote(true, 300) else true end`)
	}
	if err == nil && !done {
		err = errors.New("it is not done after 300 seconds")
	}
	if err != nil {
		return fmt.Errorf("idemtest: promote: %w", err)
	}
	return nil
}

// CatchUp waits until a replica has everything that is committed on primary now.
func (c *Cluster) CatchUp(ctx context.Context, primary *Cluster) error {
	var position string
	err := errors.Join(
		primary.ask(ctx, new(string), `select set_config('synchronous_commit', 'local', true) || pg_logical_emit_message(true, 'idemtest', '')::text`), // flushes
		primary.ask(ctx, &position, `select pg_current_wal_flush_lsn()::text`))
	for there := false; err == nil && !there; {
		if err = pause(ctx); err == nil {
			err = c.ask(ctx, &there, `select coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)`, position)
		}
	}
	if err != nil {
		return fmt.Errorf("idemtest: catch up: %w", err)
	}
	return nil
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(5 * time.Millisecond):
		return nil
	}
}

func (c *Cluster) ask(ctx context.Context, answer any, query string, args ...any) error {
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, query, args...).Scan(answer)
}

// follow makes the cluster a replica and starts it.
func (c *Cluster) follow(ctx context.Context, primary *Cluster) error {
	if err := c.watch(ctx); err != nil {
		return err
	}
	if err := c.copy(ctx, primary); err != nil {
		return err
	}
	return c.begin(ctx)
}

// copy copies the primary's data while that is down, and has the cluster follow it from there: a slot keeps the
// log that it has not received.
func (c *Cluster) copy(ctx context.Context, primary *Cluster) error {
	slot, data := uniqueName("replica"), filepath.Join(c.dir, "data")
	if err := primary.ask(ctx, new(string), `select pg_create_physical_replication_slot($1, true)::text`, slot); err != nil {
		return err
	}
	if err := primary.Crash(ctx); err != nil {
		return err
	}
	err := execute(ctx, c.dir, "cp", "-pR", filepath.Join(primary.dir, "data"), data)
	settings := fmt.Sprintf("primary_conninfo = 'host=''%s'' port=5432 user=postgres'\nprimary_slot_name = '%s'\n", primary.dir, slot)
	return errors.Join(
		err,
		primary.Start(ctx),
		c.write("postgresql.auto.conf", settings),
		c.write("standby.signal", ""),
	)
}

func (c *Cluster) write(name, content string) error {
	as, err := serverAccount()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	name = filepath.Join("data", name)
	return errors.Join(root.WriteFile(name, []byte(content), 0o600), give(root, name, as))
}
