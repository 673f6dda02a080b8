//go:build unix

package idem_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/internal/spool"
)

// The system refuses to write the second half of a file: what it did write is not
// taken for an event, and the process goes on.
func TestSystemThatRefusesToWriteIsAnsweredAsPostgresThatIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	child := exec.Command(os.Args[0], "-test.run=^TestChildWithSmallFiles$")
	child.Env = append(os.Environ(), "IDEM_TEST_SMALL_FILES="+s.dir, "IDEM_TEST_SPOOL_URL="+s.pool.Config().ConnString())
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil || !strings.HasPrefix(string(out), "spooled retrying spooled\n") {
		t.Fatalf("the child said %q, %v, want that only what fits is kept", out, err)
	}
	s.openOn(spool.System{})
	s.drain()
	s.wantOrder("1", "3")
}

// TestChildWithSmallFiles is the process whose files cannot grow.
func TestChildWithSmallFiles(t *testing.T) {
	dir := os.Getenv("IDEM_TEST_SMALL_FILES")
	if dir == "" {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 5000, Max: 5000}); err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	down.Store(true)
	inbox := idem.NewInbox(openPool(t, os.Getenv("IDEM_TEST_SPOOL_URL"), func(c *pgxpool.Config) { takeDown(c, &down) }), &notes{})
	inbox.Spool, inbox.Logger = openSpool(t, dir), nil
	large := letter("2", "o1", 0)
	large.Payload = append(large.Payload, strings.Repeat(" ", 5000)...)
	var outcomes []string
	for _, e := range []idem.Event{letter("1", "o1", 0), large, letter("3", "o1", 0)} {
		o, _ := inbox.Accept(t.Context(), e)
		outcomes = append(outcomes, string(o))
	}
	_, _ = os.Stdout.WriteString(strings.Join(outcomes, " ") + "\n")
}

// nobody is the user that a child of root becomes: root may read and write everything.
const nobody = 65534

// systemFaults are what a system does to a process that has a spool with two events.
// The process may undo them.
var systemFaults = map[string]struct {
	opened bool // the spool is opened before
	write  bool // it can read
	begin  func(dir string) error
	end    func(dir string) error
}{
	"no file descriptor is free": {
		opened: true,
		begin:  func(string) error { return limit(syscall.RLIMIT_NOFILE, 0) },
		end:    func(string) error { return limit(syscall.RLIMIT_NOFILE, 1000) },
	},
	"the directory may only be listed": {
		begin: func(dir string) error { return os.Chmod(dir, 0o400) },
		end:   func(dir string) error { return os.Chmod(dir, 0o700) },
	},
	"the directory may not be listed": {
		opened: true,
		begin:  func(dir string) error { return os.Chmod(dir, 0) },
		end:    func(dir string) error { return os.Chmod(dir, 0o700) },
	},
	"a file may not be read": {
		begin: func(dir string) error { return chmodFiles(dir, 0) },
		end:   func(dir string) error { return chmodFiles(dir, 0o600) },
	},
	"the directory may not be changed": {
		write: true,
		begin: func(dir string) error { return os.Chmod(dir, 0o500) },
		end:   func(dir string) error { return os.Chmod(dir, 0o700) },
	},
	"no file may grow": {
		write: true,
		begin: func(string) error { return limit(syscall.RLIMIT_FSIZE, 0) },
		end:   func(string) error { return limit(syscall.RLIMIT_FSIZE, 1<<30) },
	},
}

// limit sets what the system allows this process, which may be raised again.
func limit(resource int, to uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	now.Cur = min(to, now.Max)
	return syscall.Setrlimit(resource, &now)
}

func chmodFiles(dir string, mode os.FileMode) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.spool"))
	for _, name := range names {
		err = errors.Join(err, os.Chmod(name, mode))
	}
	return err
}

// A process whose disk does not do what it should, for now, loses nothing that it has
// acknowledged, and says so.
func TestSpoolOutlastsWhatTheSystemRefuses(t *testing.T) {
	t.Parallel()
	for name := range systemFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpoolApp(t)
			s.putFile(letter("1", "o1", 0))
			s.putFile(letter("2", "o1", 0))
			for _, dir := range []string{filepath.Dir(filepath.Dir(s.dir)), filepath.Dir(s.dir)} {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if os.Geteuid() == 0 {
				for _, path := range append(s.files(".spool"), s.dir) {
					if err := os.Chown(path, nobody, nobody); err != nil {
						t.Fatal(err)
					}
				}
			}
			child := exec.Command(os.Args[0], "-test.v", "-test.run=^TestChildWhoseSystemRefuses$")
			child.Env = append(os.Environ(), "IDEM_TEST_FAULT="+name, "IDEM_TEST_SPOOL="+s.dir, "IDEM_TEST_SPOOL_URL="+s.pool.Config().ConnString())
			if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Fatalf("%v:\n%s", err, out)
			}
			s.openOn(spool.System{})
			s.drain()
			s.wantOrder("1", "2", "3", "5")
			if names := append(s.files(".damaged"), s.files(".refused")...); len(names) > 0 {
				t.Errorf("%q are set aside", names)
			}
		})
	}
}

// TestChildWhoseSystemRefuses is the process of a fault.
func TestChildWhoseSystemRefuses(t *testing.T) {
	name, dir := os.Getenv("IDEM_TEST_FAULT"), os.Getenv("IDEM_TEST_SPOOL")
	if name == "" {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var down atomic.Bool
	pool := openPool(t, os.Getenv("IDEM_TEST_SPOOL_URL"), func(c *pgxpool.Config) { takeDown(c, &down) })
	var conns []*pgxpool.Conn // while there are descriptors, and root may use the socket
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Release()
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			t.Fatal(err)
		}
	}
	fault := systemFaults[name]
	do := func(f func(string) error) {
		t.Helper()
		if err := f(dir); err != nil {
			t.Fatal(err)
		}
	}
	inbox := idem.NewInbox(pool, &notes{})
	inbox.Logger = nil
	if fault.opened {
		inbox.Spool = openSpool(t, dir)
	}
	do(fault.begin)
	defer do(fault.end)
	if !fault.opened {
		inbox.Spool = openSpool(t, dir)
	}
	accept := func(id string, want idem.Outcome) {
		t.Helper()
		if o, err := inbox.Accept(t.Context(), letter(id, "o1", 0)); o != want {
			t.Errorf("Accept(%s) = %s, %v, want %s", id, o, err, want)
		}
	}
	health := func(want string) {
		t.Helper()
		h := health.New(inbox)
		h.Logger = nil
		says := ""
		for _, c := range h.Report().Checks {
			if c.Name == "spool" && !c.Healthy {
				says = c.Says
			}
		}
		if (says == "") != (want == "") || !strings.Contains(says, want) {
			t.Errorf("health says of the spool %q, want %q in it", says, want)
		}
	}
	if fault.write {
		if err := inbox.AwaitSpool(t.Context()); err != nil {
			t.Fatalf("draining what can be read: %v", err)
		}
		health("nothing can be written")
		accept("3", idem.Pending)
		down.Store(true)
		accept("4", idem.Retrying)
		health("nothing can be written")
		do(fault.end)
		accept("5", idem.Spooled)
		health("")
		return
	}
	for range 6 { // after five the file was damaged
		if err := inbox.AwaitSpool(t.Context()); err == nil || !strings.Contains(err.Error(), "reading the spool") {
			t.Fatalf("draining what cannot be read: %v", err)
		}
	}
	health("the disk does not give them")
	do(fault.end)
	for inbox.Spool.Spooling() {
		if err := inbox.AwaitSpool(t.Context()); errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	health("")
	accept("3", idem.Pending)
	accept("5", idem.Pending)
}
