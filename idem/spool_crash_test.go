package idem_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/spool"
)

// deadly is a disk on which the process dies, killed, at a step of the second file
// of events. Steps are those of writing a file, and those of removing one.
type deadly struct {
	spool.System
	step  string
	files int // that were begun, or are being removed
}

const (
	beforeCreate  = "before the file is created"
	beforeWrite   = "before it is written"
	halfWritten   = "half of it is written"
	beforeSync    = "before it is flushed"
	beforeRename  = "before it is renamed"
	beforeSyncDir = "before its name is flushed"
	beforeAnswer  = "before the answer"
	beforeRemove  = "stored and not removed"
	afterRemove   = "removed"
)

func (d *deadly) at(step string) {
	if step != d.step || d.files != 2 {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

func isProbe(name string) bool { return strings.HasPrefix(filepath.Base(name), "probe") }

func (d *deadly) Create(name string) (spool.Handle, error) {
	if isProbe(name) {
		return d.System.Create(name)
	}
	if !d.removing() {
		d.files++
	}
	d.at(beforeCreate)
	h, err := d.System.Create(name)
	return deadlyHandle{h, d}, err
}

func (d *deadly) Rename(from, to string) error {
	d.at(beforeRename)
	return d.System.Rename(from, to)
}

func (d *deadly) SyncDir(path string) error {
	d.at(beforeSyncDir)
	err := d.System.SyncDir(path)
	d.at(beforeAnswer)
	return err
}

func (d *deadly) Remove(name string) error {
	if isProbe(name) {
		return d.System.Remove(name)
	}
	if d.removing() {
		d.files++
	}
	d.at(beforeRemove)
	err := d.System.Remove(name)
	d.at(afterRemove)
	return err
}

// removing reports whether it is the second removal that counts.
func (d *deadly) removing() bool { return d.step == beforeRemove || d.step == afterRemove }

type deadlyHandle struct {
	spool.Handle
	disk *deadly
}

func (h deadlyHandle) Write(p []byte) (int, error) {
	h.disk.at(beforeWrite)
	if h.disk.step == halfWritten && h.disk.files == 2 {
		_, _ = h.Handle.Write(p[:len(p)/2])
		h.disk.at(halfWritten)
	}
	return h.Handle.Write(p)
}

func (h deadlyHandle) Sync() error {
	h.disk.at(beforeSync)
	return h.Handle.Sync()
}

// spoolEvents are those that a child spools, all of one entity.
var spoolEvents = []string{"1", "2", "3"}

// A process dies at each step of keeping events, and of storing what it kept. The
// provider delivers again what was not acknowledged.
func TestSpoolOfAKilledProcessLosesNothingAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for step, acknowledged := range map[string][]string{
		beforeCreate:  {"1"},
		beforeWrite:   {"1"},
		halfWritten:   {"1"},
		beforeSync:    {"1"},
		beforeRename:  {"1"},
		beforeSyncDir: {"1"},
		beforeAnswer:  {"1"},
		beforeRemove:  spoolEvents,
		afterRemove:   spoolEvents,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newSpoolApp(t)
			said := s.spoolInChild("IDEM_TEST_SPOOL_STEP=" + step)
			if !slices.Equal(said, acknowledged) {
				t.Fatalf("the child acknowledged %q, want %q", said, acknowledged)
			}
			s.inbox.Spool = openSpool(t, s.dir) // the next process
			s.drain()
			for _, id := range acknowledged { // without the provider's help
				s.wantState(id, idem.StateDone)
			}
			for _, id := range spoolEvents[len(acknowledged):] {
				if o, err := s.inbox.Accept(t.Context(), letter(id, "o1", 0)); !o.Acknowledged() {
					t.Errorf("%s: %s, %v", id, o, err)
				}
			}
			s.drain()
			s.wantOrder(spoolEvents...)
			if names := s.files(".spool"); len(names) > 0 {
				t.Errorf("files are left: %q", names)
			}
		})
	}
}

// spoolInChild has another process spool events on the same disk and database, and
// returns those that it has acknowledged when it has ended.
func (s *spoolApp) spoolInChild(env ...string) []string {
	s.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestChildThatSpools$")
	child.Env = append(append(os.Environ(), "IDEM_TEST_SPOOL="+s.dir, "IDEM_TEST_SPOOL_URL="+s.pool.Config().ConnString()), env...)
	if _, err := child.StdinPipe(); err != nil {
		s.Fatal(err)
	}
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, os.Stderr
	if err := child.Run(); err == nil {
		s.Fatalf("the child was to be killed, it said %q", out.String())
	}
	return strings.Fields(out.String())
}

// TestChildThatSpools is the process that is killed.
func TestChildThatSpools(t *testing.T) {
	dir := os.Getenv("IDEM_TEST_SPOOL")
	if dir == "" {
		return
	}
	go endWithParent()
	var down atomic.Bool
	down.Store(true)
	pool := openPool(t, os.Getenv("IDEM_TEST_SPOOL_URL"), func(c *pgxpool.Config) { takeDown(c, &down) })
	kept, err := idem.OpenSpoolOn(dir, &deadly{step: os.Getenv("IDEM_TEST_SPOOL_STEP")})
	if err != nil {
		t.Fatal(err)
	}
	inbox := idem.NewInbox(pool, &notes{})
	inbox.Spool, inbox.Logger = kept, nil
	for _, id := range spoolEvents {
		o, err := inbox.Accept(t.Context(), letter(id, "o1", 0))
		if o != idem.Spooled {
			_, _ = fmt.Fprintln(os.Stderr, id, o, err)
			continue
		}
		_, _ = io.WriteString(os.Stdout, id+"\n")
	}
	down.Store(false)
	select {} // it drains by itself
}
