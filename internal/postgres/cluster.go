package postgres

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// URL returns the connection string of the cluster's database, the same before and
// after a crash.
func (c *Cluster) URL() string {
	q := url.Values{"host": {c.dir}, "port": {"5432"}}
	return "postgres://postgres@/postgres?" + encode(q)
}

// Origin names the Postgres for people: "PostgreSQL 15.8 from
// /usr/lib/postgresql/15/bin".
func (c *Cluster) Origin() string { return c.origin }

// create starts a cluster on a copy of initialized data if there is one, and keeps such a copy if not.
func (c *Cluster) create(ctx context.Context) error {
	if err := c.launch(ctx); err != nil {
		return err
	}
	var from initialized
	if !c.Durable {
		from = initializedBy(c.bin)
	}
	if from.copyTo(c.dir) == nil {
		err := c.begin(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// The copy may be at fault: a new one replaces it.
		if err := errors.Join(c.Close(), c.launch(ctx)); err != nil {
			return err
		}
	}
	if err := c.order(ctx, "init", "made"); err != nil {
		return err
	}
	data := from.pack(c.dir)
	if err := c.begin(ctx); err != nil {
		return err
	}
	from.keep(data)
	return nil
}

// launch starts the watchdog of a cluster that has no data yet.
func (c *Cluster) launch(ctx context.Context) error {
	switch err := c.watch(ctx); {
	case IsAbsent(err):
		return fmt.Errorf("idemtest: nothing to run a cluster with: install PostgreSQL, or npm, which fetches it (%w)", err)
	case err != nil:
		return fmt.Errorf("idemtest: %w", err)
	}
	return nil
}

func (c *Cluster) watch(ctx context.Context) error {
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
	if c.leash, err = newLeash(c.command(as)); err != nil {
		return errors.Join(err, os.RemoveAll(c.dir))
	}
	return nil
}

// command runs the watchdog, which runs the rest.
func (c *Cluster) command(as account) *exec.Cmd {
	segment := "1" // MB of each file of the log: quick to make
	if c.Durable {
		segment = "16"
	}
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

// begin starts the cluster for the first time, and finds out which Postgres it is.
func (c *Cluster) begin(ctx context.Context) error {
	if err := c.order(ctx, "start", "up"); err != nil {
		return err
	}
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

// makeDir makes a folder for a cluster that belongs to the account.
func makeDir(durable bool, owner account) (string, error) {
	places := []string{memory(), os.TempDir(), "/tmp"}
	if durable {
		places = []string{os.Getenv("TMPDIR"), "/var/tmp", "/tmp"}
	}
	i := slices.IndexFunc(places, suitable)
	if i < 0 {
		return "", errors.New("no folder for a cluster: set TMPDIR to one that everyone may enter, of 60 bytes at most")
	}
	dir, err := os.MkdirTemp(places[i], "idemtest-")
	if err != nil {
		return "", fmt.Errorf("no folder for a cluster: %w", err)
	}
	if os.Geteuid() != 0 {
		return dir, nil
	}
	return dir, os.Chown(dir, owner.uid, owner.gid)
}

// suitable reports whether a cluster can be below a folder. Its path is short,
// because the path of a socket has about 100 bytes on every system.
func suitable(place string) bool {
	info, err := os.Stat(place)
	return err == nil && info.IsDir() && filepath.IsAbs(place) && len(place) <= 60 && reachable(place)
}

// environment is this process's, without variables that would change a server started
// in it. macOS needs a locale to be set.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PG") || strings.HasPrefix(kv, "LC_")
	})
	return append(env, "LC_ALL=C")
}

// patience bounds the time in which a child process has to end. Then it is killed.
const patience = 15 * time.Second

// leash holds a child process that ends by itself when its stdin ends. The
// other end of that pipe is here and nowhere else: the child goes when this
// process goes, whichever way it goes.
type leash struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout chan string // its lines; closed when the child is gone
	stderr *tail
}

func newLeash(cmd *exec.Cmd) (*leash, error) {
	l := &leash{cmd: cmd, stdout: make(chan string, 1), stderr: new(tail)}
	cmd.Stderr = l.stderr
	cmd.WaitDelay = patience
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if l.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go l.follow(stdout)
	return l, nil
}

func (l *leash) follow(stdout io.Reader) {
	defer close(l.stdout)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		l.stdout <- lines.Text()
	}
	l.cmd.Wait() // the error is in stderr
}

// send gives the child an order.
func (l *leash) send(order string) error {
	_, err := fmt.Fprintln(l.stdin, order)
	return err
}

// expect waits for the child to write a line. Another line, or its end, is an
// error that says what it wrote to stderr.
func (l *leash) expect(ctx context.Context, line string) error {
	select {
	case got := <-l.stdout:
		if got != line {
			return errors.New(l.stderr.String())
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the child and waits until it is gone.
func (l *leash) close() error {
	l.stdin.Close()
	kill := time.AfterFunc(patience, func() { killGroup(l.cmd.Process) })
	for range l.stdout {
	}
	if !kill.Stop() {
		return fmt.Errorf("%s had to be killed", l.cmd.Path)
	}
	return nil
}

// tail keeps the end of the text that is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-2000):]
	return len(p), nil
}

// String returns the kept text, in one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.end)), " ")
}
