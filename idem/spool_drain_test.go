package idem_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/spool"
)

// Two processes share a directory, which they should not, and both drain it; and a
// file that was drained comes back, from a backup say.
func TestSpoolThatIsDrainedTwiceHasOneEffectPerEvent(t *testing.T) {
	t.Parallel()
	const files, perFile = 60, 5
	s := newSpoolApp(t)
	want := make([]string, 0, files*perFile)
	for f := range files {
		var events []idem.Event
		for e := range perFile {
			id := fmt.Sprint(f*perFile + e)
			events = append(events, letter(id, "o1", 0))
			want = append(want, id)
		}
		s.putFile(events...)
	}
	copied := make(map[string][]byte)
	for _, name := range s.files(".spool") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		copied[name] = data
	}
	var processes sync.WaitGroup
	for range 3 {
		i := s.newInbox(s.pool)
		i.Workers, i.Spool = 1, openSpool(t, s.dir)
		processes.Go(func() {
			if err := i.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	s.wantOrder(want...)
	for name, data := range copied {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.openOn(spool.System{})
	s.drain()
	s.wantOrder(want...)
	s.untilDrained()
}

// A process that dies leaves its events to another one that runs, if they share the
// directory, and that finds them when it looks.
func TestEventsOfAProcessThatDiedAreDrainedByOneThatRuns(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.accept(idem.Pending, letter("0", "o1", 0))
	s.putFile(letter("1", "o1", 0))
	young := s.files(".spool")[0]
	s.wantHealth("the process may live", s.newHealth(s.inbox), "", "")
	if s.spool.Spooling() {
		t.Error("it takes what another process has written a moment ago")
	}
	old := filepath.Join(s.dir, fmt.Sprintf("%020d-00000000-1.spool", time.Now().Add(-2*time.Minute).UnixNano()))
	if err := os.Rename(young, old); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(s.dir, "x.spool.tmp")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(left, time.Time{}, time.Now().Add(-2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	s.drain()
	s.untilDrained()
	s.wantOrder("0", "1")
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was being written is still there: %v", err)
	}
}

// Where Postgres or the way to it is slow, a statement with many events may never
// end in time.
func TestDrainStoresFewerEventsAtATimeWhenManyAreTooSlow(t *testing.T) {
	t.Parallel()
	const events = 64
	s := newSpoolApp(t)
	s.exec(`create function slow() returns trigger language plpgsql as $$ begin
			if (select count(*) from fresh) > 16 then raise 'canceling statement due to statement timeout' using errcode = '57014'; end if;
			return null; end $$;
		create trigger slow after insert on idem_events referencing new table as fresh for each statement execute function slow()`)
	var all []idem.Event
	var want []string
	for n := range events {
		all, want = append(all, letter(fmt.Sprint(n), "o1", 0)), append(want, fmt.Sprint(n))
	}
	s.putFile(all...)
	s.openOn(spool.System{})
	s.accept(idem.Spooled, letter(fmt.Sprint(events), "o1", 0)) // starts the drain
	s.untilDrained()
	s.drain()
	s.wantOrder(append(want, fmt.Sprint(events))...)
}
