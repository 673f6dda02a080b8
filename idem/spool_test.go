package idem_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/internal/spool"
)

func TestSpoolKeepsEventsWhilePostgresIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.wantAnswer(paid("1"), http.StatusOK)
	s.down.Store(true)
	for _, id := range []string{"2", "3", "2", "1"} { // the provider delivers two of them again
		s.wantAnswer(paid(id), http.StatusOK)
	}
	s.down.Store(false)
	s.wantAnswer(paid("4"), http.StatusOK)
	s.untilDrained()
	s.wantAnswer(paid("5"), http.StatusOK)
	s.wantAnswer(paid("2"), http.StatusOK)
	s.drain()
	s.wantOrder("1", "2", "3", "4", "5")
	var delivered []idem.Outcome
	s.mu.Lock()
	for _, o := range s.observed {
		if o.Stage == idem.StageDelivery {
			delivered = append(delivered, o.Outcome)
		}
	}
	s.mu.Unlock()
	want := []idem.Outcome{idem.Pending, idem.Spooled, idem.Spooled, idem.Spooled, idem.Spooled, idem.Spooled, idem.Pending, idem.Duplicate}
	if delivered[5] == idem.Pending {
		want[5] = idem.Pending // the drain was first
	}
	if diff := cmp.Diff(want, delivered); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
	for _, line := range []string{"go to the spool", "spool is drained"} {
		if n := strings.Count(s.logged(), line); n != 1 {
			t.Errorf("it logged %q %d times, want once", line, n)
		}
	}
}

// What is kept is kept exactly: a provider's bytes, its time, its account.
func TestSpooledEventIsStoredAsAnyOther(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	body := make([]byte, 256)
	for n := range body {
		body[n] = byte(n)
	}
	events := []idem.Event{
		{ID: "bytes", Type: "new", Key: "k\n1", Scope: "a/b \xff", OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.FixedZone("", -3*3600)), Payload: body},
		{ID: "no body, no time", Type: "new"},
		{ID: "late", Type: "new", OccurredAt: time.Date(9998, 12, 31, 11, 59, 59, 0, time.FixedZone("", -12*3600)), Payload: []byte(`{}`)},
		{Payload: []byte("no id\n\n")},
	}
	const stored = `select string_agg(concat_ws('|', event, type, key, lane, idem_events.occurred_at, idem_payloads.occurred_at, body_hash, encode(body, 'hex')), E'\n' order by event)
		from idem_events join idem_payloads using (event)`
	s.accept(idem.Pending, events...)
	want := queryOne[string](s.app, stored)
	s.exec(`delete from idem_events; delete from idem_payloads`)
	s.down.Store(true)
	s.accept(idem.Spooled, events...)
	s.down.Store(false)
	s.untilDrained()
	if diff := cmp.Diff(want, queryOne[string](s.app, stored)); diff != "" {
		t.Error("what is stored (-directly +by the spool):\n" + diff)
	}
}

func TestEventThatNeitherStoreTakesIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.down.Store(true)
	s.spool.MaxBytes = 400 // two events
	s.accept(idem.Spooled, letter("1", "o1", 0), letter("2", "o2", 0))
	for range 2 {
		s.wantAnswer(paid("3"), http.StatusServiceUnavailable)
	}
	if !strings.Contains(s.logged(), "it is full: raise MaxBytes") {
		t.Errorf("nothing says that it is full:\n%s", s.logged())
	}
	s.down.Store(false)
	s.untilDrained()
	s.wantAnswer(paid("3"), http.StatusOK)
	s.drain()
	s.wantEffects(3)
}

// An event that Postgres will never take holds up nobody, and is not thrown away.
func TestEventThatPostgresRefusesIsSetAside(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.exec(`alter table idem_events add constraint no_bad check (event not like '%bad%')`)
	s.down.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0), letter("bad", "o1", 0), letter("2", "o1", 0), letter("3", "o2", 0))
	s.down.Store(false)
	s.untilDrained()
	s.drain()
	s.wantEffects(3)
	wantEachOnceInOrder(s.app)
	health := s.newHealth(s.inbox)
	s.wantHealth("an event is set aside", health, "spool", "1 files of events are set aside")
	if !strings.Contains(s.logged(), "Postgres refuses an event") || !strings.Contains(s.logged(), "no_bad") {
		t.Errorf("the log does not say why:\n%s", s.logged())
	}

	aside := s.files(".refused")
	if len(aside) != 1 {
		t.Fatalf("set aside: %q, want one file", aside)
	}
	s.exec(`alter table idem_events drop constraint no_bad`)
	if err := os.Rename(aside[0], strings.TrimSuffix(aside[0], ".refused")+".spool"); err != nil {
		t.Fatal(err)
	}
	again := s.newInbox(s.pool)
	again.Spool = openSpool(t, s.dir)
	if err := again.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantEffects(4)
}

// A scope is the application's: its provider keeps the events until it is put right.
func TestScopeThatIsTooLongIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	e := letter("1", "o1", 0)
	e.Scope = strings.Repeat("é", 128)
	for _, down := range []bool{false, true} {
		s.down.Store(down)
		if o, err := s.inbox.Accept(t.Context(), e); o != idem.Retrying || err == nil || !strings.Contains(err.Error(), "the scope has 256 bytes") {
			t.Errorf("Accept = %s, %v, want an error that says why", o, err)
		}
	}
	s.down.Store(false)
	if o, err := s.processor.Accept(t.Context(), e); o != idem.Retrying || err == nil {
		t.Errorf("the processor's Accept = %s, %v, want an error", o, err)
	}
	if files := s.files("*"); len(files) > 0 {
		t.Errorf("the spool has %q", files)
	}
	e.Scope = strings.Repeat("é", 127) + "/"
	s.accept(idem.Pending, e)
}

// What an index cannot hold is refused for good, and holds up no other event.
func TestSpooledEventThatNoIndexHoldsIsSetAside(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	e := letter("1", "o1", 0)
	random := make([]byte, 9000) // Postgres compresses what is not
	_, _ = rand.Read(random)
	e.Scope = string(random)
	s.putFile(e, letter("2", "o1", 0))
	s.openOn(spool.System{})
	s.drain()
	s.wantOrder("2")
	s.untilDrained()
	if n := len(s.files(".refused")); n != 1 {
		t.Errorf("%d files are set aside, want 1:\n%s", n, s.logged())
	}
}

// What is older than Retention may have been processed and forgotten.
func TestSpooledEventOlderThanRetentionIsSetAside(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.inbox.Retention, s.inbox.AllowProcessingTwice = time.Nanosecond, true
	s.down.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	s.down.Store(false)
	s.untilDrained()
	s.wantState("1", "")
	if n := len(s.files(".refused")); n != 1 || !strings.Contains(s.logged(), "older than Retention") {
		t.Errorf("%d files are set aside, want 1:\n%s", n, s.logged())
	}
}

func TestHealthSaysWhatTheSpoolHolds(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	health := func() *health.Health {
		h := s.newHealth(s.inbox)
		h.MaxSpooled = time.Hour
		return h
	}
	s.wantHealth("empty", health(), "", "")
	s.exec(`create function fail() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
		create trigger fail before insert on idem_events for each row execute function fail()`)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	s.wantHealth("for a moment", health(), "", "")
	late := health()
	late.MaxSpooled = time.Nanosecond
	for s.spool.Age().Round(time.Second) == 0 {
		pause()
	}
	s.wantHealth("for too long", late, "spool", "1 events have been on this machine's disk")
	off := health()
	off.MaxSpooled = 0
	s.wantHealth("turned off", off, "", "")
	s.spool.MaxBytes = 200
	s.wantHealth("nearly full", health(), "spool", "% full")
	s.exec(`drop trigger fail on idem_events`)
	s.untilDrained()
	s.wantHealth("drained", health(), "", "")
}

func TestSpoolServesOneInbox(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.accept(idem.Pending, letter("1", "o1", 0))
	other := s.newInbox(s.pool)
	other.Spool = s.spool
	if err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another inbox's") {
		t.Errorf("Run = %v, want an error", err)
	}
	if o, err := other.Accept(t.Context(), letter("2", "o1", 0)); o != idem.Pending || err != nil {
		t.Errorf("Accept = %s, %v, want pending: Postgres is there", o, err)
	}
	s.down.Store(true)
	if o, err := other.Accept(t.Context(), letter("3", "o1", 0)); o != idem.Retrying || err == nil || !strings.Contains(err.Error(), "another inbox's") {
		t.Errorf("Accept = %s, %v, want an error that says why", o, err)
	}
	s.spool.MaxBytes = 0
	if err := s.inbox.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("Run = %v, want an error", err)
	}
}

func TestSpoolIsNotOpenedWhereNothingCanBeKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for reason, dir := range map[string]string{
		"its parent is missing, as when a volume is not mounted": filepath.Join(t.TempDir(), "volume", "spool"),
		"it is a file": file,
	} {
		if _, err := idem.OpenSpool(dir); err == nil || !strings.Contains(err.Error(), "make") {
			t.Errorf("%s: %v, want an error that says what to do", reason, err)
		}
	}
}

// Files are for nobody else to read.
func TestSpoolIsPrivate(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.down.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	for _, name := range append(s.files(".spool"), s.dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", name, info.Mode())
		}
	}
}

// Drain waits for what the spool holds, and says if Postgres does not take it.
func TestDrainStoresWhatTheSpoolHolds(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.down.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	if err := s.inbox.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "draining the spool") {
		t.Errorf("Drain = %v, want an error", err)
	}
	s.down.Store(false)
	for { // a try may have begun before
		err := s.inbox.Drain(t.Context())
		if err == nil {
			break
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	s.wantEffects(1)
}
