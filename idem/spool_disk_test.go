package idem_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/spool"
)

// broken is a disk that fails at one step while it is full.
type broken struct {
	spool.System
	step string
	only string // the name of the file that has the fault; "" is every one
	full atomic.Bool
	hits atomic.Int32
}

var errDisk = errors.New("no space left on device")

func (b *broken) fail(step string) error {
	if step != b.step || !b.full.Load() {
		return nil
	}
	b.hits.Add(1)
	return errDisk
}

// ReadFile fails at the end of a file.
func (b *broken) ReadFile(name string) ([]byte, error) {
	data, err := b.System.ReadFile(name)
	if err != nil || b.only != "" && name != b.only {
		return data, err
	}
	if err := b.fail("read"); err != nil {
		return data[:len(data)-2], err
	}
	return data, err
}

func (b *broken) Create(name string) (spool.Handle, error) {
	if err := b.fail("create"); err != nil {
		return nil, err
	}
	h, err := b.System.Create(name)
	return brokenHandle{h, b}, err
}

func (b *broken) Rename(from, to string) error {
	if err := b.fail("rename"); err != nil {
		return err
	}
	return b.System.Rename(from, to)
}

func (b *broken) SyncDir(path string) error {
	return errors.Join(b.fail("sync directory"), b.System.SyncDir(path))
}

func (b *broken) Remove(name string) error {
	if err := b.fail("remove"); err != nil {
		return err
	}
	return b.System.Remove(name)
}

type brokenHandle struct {
	spool.Handle
	disk *broken
}

func (h brokenHandle) Write(p []byte) (int, error) {
	if err := h.disk.fail("write"); err != nil {
		n, _ := h.Handle.Write(p[:len(p)-1])
		return n, err
	}
	return h.Handle.Write(p)
}

func (h brokenHandle) Sync() error {
	return errors.Join(h.disk.fail("sync"), h.Handle.Sync())
}

func (h brokenHandle) Close() error {
	return errors.Join(h.Handle.Close(), h.disk.fail("close"))
}

// openOn replaces the app's spool by one on a disk.
func (s *spoolApp) openOn(disk spool.Disk) {
	s.Helper()
	var err error
	if s.spool, err = idem.OpenSpoolOn(s.dir, disk); err != nil {
		s.Fatal(err)
	}
	s.inbox.Spool = s.spool
}

func TestFullDiskIsAnsweredAsPostgresThatIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"create", "write", "sync", "close", "rename", "sync directory"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newSpoolApp(t)
			disk := &broken{step: step}
			s.openOn(disk)
			s.down.Store(true)
			s.wantAnswer(paid("1"), http.StatusOK)
			disk.full.Store(true)
			s.wantAnswer(paid("2"), http.StatusServiceUnavailable)
			s.wantAnswer(paid("2"), http.StatusServiceUnavailable)
			disk.full.Store(false)
			s.wantAnswer(paid("3"), http.StatusOK)
			disk.full.Store(true)
			s.down.Store(false)
			s.wantAnswer(`{"id":"4","type":"paid","order":"o2"}`, http.StatusOK) // in Postgres: no earlier one is in the way
			s.untilDrained()
			s.wantAnswer(paid("2"), http.StatusOK) // again, as the provider does
			s.drain()
			s.wantEffects(4)
			if n := queryOne[int](s.app, `select count(distinct event) from effects`); n != 4 {
				t.Errorf("%d events have an effect, want 4", n)
			}
			if disk.hits.Load() < 2 || len(s.files(".tmp")) > 0 {
				t.Errorf("the disk failed %d times, and %q are left", disk.hits.Load(), s.files(".tmp"))
			}
		})
	}
}

// What cannot be deleted is stored once, also by the next process.
func TestFileThatCannotBeDeletedIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	disk := &broken{step: "remove"}
	s.openOn(disk)
	s.down.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0), letter("2", "o1", 0))
	disk.full.Store(true)
	s.down.Store(false)
	s.untilLogged("spool is drained")
	s.accept(idem.Pending, letter("3", "o1", 0))
	if !strings.Contains(s.logged(), "cannot be deleted") || len(s.files(".spool")) != 2 {
		t.Errorf("%q are left, want 2:\n%s", s.files(".spool"), s.logged())
	}
	s.openOn(spool.System{})
	s.drain()
	s.untilDrained()
	s.wantOrder("1", "2", "3")
}

// putFile writes events to one file, as arriving at the same time would.
func (s *spoolApp) putFile(events ...idem.Event) {
	s.Helper()
	dir, err := spool.Open(s.dir, spool.System{})
	if err != nil {
		s.Fatal(err)
	}
	var records [][]byte
	for _, e := range events {
		record, err := idem.Record(e, "", time.Now())
		if err != nil {
			s.Fatal(err)
		}
		records = append(records, record)
	}
	if err := dir.Put(records); err != nil {
		s.Fatal(err)
	}
}

func TestDamageCostsTheEventsThatItHits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(file []byte, lines [][]byte) []byte
		want   []string
		log    string
	}{
		"a byte in the middle":    {func(f []byte, l [][]byte) []byte { f[len(l[0])+len(l[1])/2] ^= 1; return f }, []string{"1", "3"}, "events=1"},
		"a line break":            {func(f []byte, l [][]byte) []byte { f[len(l[0])-1] = ' '; return f }, []string{"3"}, "events=2"},
		"the end cut off":         {func(f []byte, l [][]byte) []byte { return f[:len(f)-2] }, []string{"1", "2"}, "events=1"},
		"whole lines cut off":     {func(f []byte, l [][]byte) []byte { return f[:len(l[0])] }, []string{"1"}, "events=2"},
		"nothing left":            {func([]byte, [][]byte) []byte { return nil }, nil, "events=3"},
		"zeros":                   {func(f []byte, _ [][]byte) []byte { return make([]byte, len(f)) }, nil, "events=3"},
		"what is not of an event": {func([]byte, [][]byte) []byte { return []byte("297bd0aa {}\n") }, nil, "file="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpoolApp(t)
			s.putFile(letter("1", "o1", 0), letter("2", "o1", 0), letter("3", "o1", 0))
			file := s.files(".spool")[0]
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			damaged := c.damage(bytes.Clone(data), bytes.SplitAfter(data, []byte("\n")))
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s.putFile(letter("4", "o1", 0))
			s.openOn(spool.System{})
			s.drain()
			s.wantOrder(append(c.want, "4")...)
			s.untilDrained()
			kept, err := os.ReadFile(strings.TrimSuffix(file, ".spool") + ".damaged")
			if err != nil || !bytes.Equal(kept, damaged) {
				t.Errorf("the damaged file is not kept: %q, %v", kept, err)
			}
			s.wantHealth("damaged", s.newHealth(s.inbox), "spool", "set aside")
			if !strings.Contains(s.logged(), "level=ERROR msg=\"webhook spool: the disk has damaged events") || !strings.Contains(s.logged(), c.log) {
				t.Errorf("the log does not tell:\n%s", s.logged())
			}
		})
	}
}

// untilUnread waits for so many passes in a row that cannot read a file.
func (s *spoolApp) untilUnread(passes int) {
	s.Helper()
	for range passes {
		if err := s.inbox.AwaitSpool(s.Context()); err == nil || !strings.Contains(err.Error(), "reading the spool") {
			s.Fatal("draining what cannot be read: ", err)
		}
	}
}

// A disk may be late, however long. Only what was read whole can be damaged.
func TestFileThatCannotBeReadIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, heal := range map[string]func(*spoolApp, *broken) (want []string){
		"until the disk gives it": func(_ *spoolApp, disk *broken) []string {
			disk.full.Store(false)
			return []string{"1", "2", "3", "4"}
		},
		"until somebody says that it is lost": func(s *spoolApp, disk *broken) []string {
			if err := os.Rename(disk.only, strings.TrimSuffix(disk.only, ".spool")+".damaged"); err != nil {
				s.Fatal(err)
			}
			return []string{"1", "4"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpoolApp(t)
			s.putFile(letter("1", "o1", 0))
			s.putFile(letter("2", "o1", 0), letter("3", "o1", 0))
			disk := &broken{step: "read", only: s.files(".spool")[1]}
			disk.full.Store(true)
			s.openOn(disk)
			s.untilUnread(6) // after five it was damaged
			s.wantState("1", idem.StatePending)
			s.accept(idem.Spooled, letter("4", "o1", 0)) // does not pass those before
			s.wantHealth("a file cannot be read", s.newHealth(s.inbox), "spool", "the disk does not give them")
			if aside := s.files(".damaged"); len(aside) > 0 {
				t.Errorf("%q are set aside", aside)
			}
			want := heal(s, disk)
			s.untilDrained()
			s.drain()
			s.wantOrder(want...)
		})
	}
}

// Setting a file aside needs a disk that can be written to. Until there is one, what
// is not in the file goes on.
func TestFileThatCannotBeSetAsideHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		aside string
		spoil func(s *spoolApp, file string)
	}{
		"damaged": {".damaged", func(s *spoolApp, file string) {
			data, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, data[:len(data)-2], 0o600)
			}
			if err != nil {
				s.Fatal(err)
			}
		}},
		"refused": {".refused", func(s *spoolApp, _ string) {
			s.exec(`alter table idem_events add constraint no_bad check (event not like '%bad%')`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpoolApp(t)
			s.putFile(letter("1", "o1", 0), letter("bad", "o1", 0))
			c.spoil(s, s.files(".spool")[0])
			disk := &broken{step: "rename"}
			disk.full.Store(true)
			s.openOn(disk)
			s.drain()
			s.untilLogged("spool is drained")
			s.wantOrder("1")
			s.wantHealth("it is not set aside", s.newHealth(s.inbox), "spool", "nothing can be written")
			s.accept(idem.Pending, letter("2", "o1", 0))
			if live, aside := s.files(".spool"), s.files(c.aside); len(live) != 1 || len(aside) != 0 {
				t.Errorf("there are %q and %q, want the file as it was", live, aside)
			}
			disk.full.Store(false)
			_ = s.newHealth(s.inbox).Report() // looks at the disk
			s.untilDrained()
			if aside := s.files(c.aside); len(aside) != 1 {
				t.Errorf("%q are set aside, want one file", aside)
			}
			s.drain()
			s.wantOrder("1", "2")
		})
	}
}
