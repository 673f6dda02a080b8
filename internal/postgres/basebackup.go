package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

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
// were copied half-written. A file that is dropped meanwhile is not missed.
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
