package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Replica starts another cluster that follows this one by streaming replication,
// and takes reads only until it is promoted. It has the same fields, but not the settings that
// ALTER SYSTEM has set, and stays when this one is crashed or closed: close it
// too. The context bounds the start.
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
	if err := c.launch(ctx, ""); err != nil {
		return err
	}
	if err := c.expect(ctx, "down"); err != nil {
		return err
	}
	if err := c.copy(ctx, primary); err != nil {
		return err
	}
	if err := c.order(ctx, "start", "up"); err != nil {
		return err
	}
	return c.introduce(ctx)
}

// copy takes a base backup of the primary, which may be under load.
// See https://www.postgresql.org/docs/current/continuous-archiving.html.
func (c *Cluster) copy(ctx context.Context, primary *Cluster) error {
	conn, err := pgx.Connect(ctx, primary.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	begin, end := `select pg_backup_start('idemtest', true)`, `select labelfile from pg_backup_stop(false)`
	if conn.PgConn().ParameterStatus("server_version") < "15" {
		begin, end = `select pg_start_backup('idemtest', true, false)`, `select labelfile from pg_stop_backup(false, false)`
	}
	slot, label := uniqueName("replica"), ""
	if _, err := conn.Exec(ctx, `select pg_create_physical_replication_slot($1, true)`, slot); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, begin); err != nil {
		return err
	}
	if err := c.copyFiles(primary); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, end).Scan(&label); err != nil {
		return err
	}
	settings := fmt.Sprintf("primary_conninfo = 'host=''%s'' port=5432 user=postgres'\nprimary_slot_name = '%s'\n", primary.dir, slot)
	return errors.Join(
		c.write("backup_label", label),
		c.write("postgresql.auto.conf", settings),
		c.write("standby.signal", ""),
	)
}

// transient are the folders of a cluster with files that belong to its running
// server, or to its log, which the replica gets from the primary.
var transient = []string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}

// copyFiles copies the data while the primary changes it: recovery corrects pages that
// were copied half-written. A file that is dropped during the copy is no error.
func (c *Cluster) copyFiles(primary *Cluster) error {
	from := filepath.Join(primary.dir, "data")
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, from), "/")
		top, below, _ := strings.Cut(name, "/")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && (!slices.Contains(transient, top) || below == "" || name == "pg_wal/archive_status"):
			return c.makeFolder(name)
		case entry.IsDir():
			return fs.SkipDir
		case slices.Contains(transient, top), strings.HasPrefix(name, "postmaster."), strings.HasPrefix(entry.Name(), "pg_internal.init"):
			return nil
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return c.write(name, string(content))
	})
}

func (c *Cluster) makeFolder(name string) error {
	path := filepath.Join(c.dir, "data", name)
	return errors.Join(os.Mkdir(path, 0o700), c.give(path))
}

func (c *Cluster) write(name, content string) error {
	path := filepath.Join(c.dir, "data", name)
	return errors.Join(os.WriteFile(path, []byte(content), 0o600), c.give(path))
}

// give makes a file that root has made Postgres's.
func (c *Cluster) give(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	as, err := serverAccount()
	if err != nil {
		return err
	}
	return os.Chown(path, as.uid, as.gid)
}
