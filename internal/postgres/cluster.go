package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a Postgres of the test's own, never one that the environment names: to
// crash it and start it again, or to measure with. Set its fields, then call
// [Cluster.Start]. Its database is for any number of goroutines, its methods
// are for one at a time.
//
// It runs the PostgreSQL binaries of this machine, or those that npm fetches.
// It ends with this process, if it is not closed before.
type Cluster struct {
	// Durable makes commits wait for the disk, as in production: fsync and
	// full_page_writes are on, and the data is in TMPDIR, else in /var/tmp. By
	// default they are off, and the data is in memory where that is possible:
	// then a commit outlives [Cluster.Crash] all the same, though not the machine.
	Durable bool

	// Settings are further settings of the server, as in postgresql.conf.
	Settings map[string]string

	bin    string
	dir    string // of the socket and the data
	origin string
	leash  *leash // nil until Start, and after Close
	up     bool
}

// longest is the time that a start may take: the first one may fetch binaries.
const longest = 5 * time.Minute

//go:embed watchdog.sh
var watchdog string

// Start starts the cluster, or starts it again on the same data after
// [Cluster.Crash] or [Cluster.Kill]. The context bounds the start, not the cluster. A cluster
// that does not start is closed, and its data is gone.
func (c *Cluster) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var err error
	switch {
	case c.leash == nil:
		err = c.create(ctx)
	case !c.up:
		err = c.order(ctx, "start", "up")
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// Crash stops all of Postgres immediately, without writing anything more:
// connections break, and transactions in flight are lost. The next Start recovers
// from the log. Commits are lost too that did not wait for it, those with
// synchronous_commit = off: if none may be written before the crash, set
// wal_writer_delay to 10s in Settings.
func (c *Cluster) Crash(ctx context.Context) error { return c.stop(ctx, "crash") }

// Kill is [Cluster.Crash] by kill -9 of the postmaster. Its other processes end
// by themselves as soon as they notice: until then a session goes on with its
// statement, and may even commit. The next Start waits for them.
func (c *Cluster) Kill(ctx context.Context) error { return c.stop(ctx, "kill") }

func (c *Cluster) stop(ctx context.Context, order string) error {
	if !c.up {
		return fmt.Errorf("idemtest: the cluster does not run: start it before the %s", order)
	}
	if err := c.order(ctx, order, "down"); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// Close stops Postgres and removes its data. When it returns, both are gone.
func (c *Cluster) Close() error {
	if c.leash == nil {
		return nil
	}
	err := c.leash.close()
	c.leash, c.up = nil, false
	if err := errors.Join(err, os.RemoveAll(c.dir)); err != nil {
		return fmt.Errorf("idemtest: close: %w", err)
	}
	return nil
}

// URL is the connection string of the cluster's database, the same before and
// after a crash.
func (c *Cluster) URL() string {
	q := url.Values{"host": {c.dir}, "port": {"5432"}}
	return "postgres://postgres@/postgres?" + encode(q)
}

// Origin says for people which Postgres this is: "PostgreSQL 15.8 from
// /usr/lib/postgresql/15/bin".
func (c *Cluster) Origin() string { return c.origin }

func (c *Cluster) create(ctx context.Context) error {
	segment := "1" // MB of each file of the log: quick to make
	if c.Durable {
		segment = "16"
	}
	switch err := c.launch(ctx, segment); {
	case IsAbsent(err):
		return fmt.Errorf("idemtest: nothing to run a cluster with: install PostgreSQL, or npm, which fetches it (%w)", err)
	case err != nil:
		return fmt.Errorf("idemtest: %w", err)
	}
	return c.await(ctx)
}

func (c *Cluster) launch(ctx context.Context, segment string) error {
	as, err := serverAccount()
	if err != nil {
		return err
	}
	if c.bin, err = binaries(ctx); err != nil {
		return err
	}
	if c.dir, err = makeDir(c.Durable, as); err != nil {
		return err
	}
	if c.leash, err = newLeash(c.command(as, segment)); err != nil {
		return errors.Join(err, os.RemoveAll(c.dir))
	}
	return nil
}

// command runs the watchdog, which runs the rest.
func (c *Cluster) command(as account, segment string) *exec.Cmd {
	settings := []string{"-p", "5432", "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "timezone=UTC"}
	if !c.Durable {
		settings = append(settings, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	for name, value := range c.Settings {
		settings = append(settings, "-c", name+"="+value)
	}
	cmd := exec.Command("sh", append([]string{"-c", watchdog, "idemtest", c.bin, c.dir, segment}, settings...)...)
	cmd.Dir, cmd.Env = c.dir, environment()
	detach(cmd)
	lend(cmd, as)
	return cmd
}

func (c *Cluster) await(ctx context.Context) error {
	if err := c.expect(ctx, "up"); err != nil {
		return err
	}
	return c.introduce(ctx)
}

// introduce finds out which Postgres this is.
func (c *Cluster) introduce(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return fmt.Errorf("idemtest: a new cluster refuses its first connection: %w", err)
	}
	c.origin = product(conn) + " from " + c.bin
	return conn.Close(ctx)
}

func (c *Cluster) order(ctx context.Context, order, wanted string) error {
	if err := c.leash.send(order); err != nil {
		return fmt.Errorf("idemtest: the cluster is gone: start another: %w", err)
	}
	return c.expect(ctx, wanted)
}

func (c *Cluster) expect(ctx context.Context, wanted string) error {
	if err := c.leash.expect(ctx, wanted); err != nil {
		return fmt.Errorf("idemtest: PostgreSQL of %s is not %s: %w", c.bin, wanted, err)
	}
	c.up = wanted == "up"
	return nil
}
