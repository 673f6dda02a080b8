//go:build unix

package idem_test

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
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
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: 1000}); err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	down.Store(true)
	inbox := idem.NewInbox(openPool(t, os.Getenv("IDEM_TEST_SPOOL_URL"), func(c *pgxpool.Config) { takeDown(c, &down) }), &notes{})
	inbox.Spool, inbox.Logger = openSpool(t, dir), nil
	large := letter("2", "o1", 0)
	large.Payload = append(large.Payload, strings.Repeat(" ", 2000)...)
	var outcomes []string
	for _, e := range []idem.Event{letter("1", "o1", 0), large, letter("3", "o1", 0)} {
		o, _ := inbox.Accept(t.Context(), e)
		outcomes = append(outcomes, string(o))
	}
	_, _ = os.Stdout.WriteString(strings.Join(outcomes, " ") + "\n")
}
