package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// spoolApp is an app whose inbox has a spool, and whose Postgres can be away. What
// is done is noted with its place.
type spoolApp struct {
	*app
	dir   string
	spool *idem.Spool
	away  *atomic.Bool

	busy    *pgxpool.Conn // what keeps Postgres from taking events
	release func()
}

func openSpoolApp(t *testing.T, set func(*pgxpool.Config)) *spoolApp {
	t.Helper()
	away := new(atomic.Bool)
	s := &spoolApp{app: openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		goAway(c, away)
		set(c)
	})), dir: filepath.Join(t.TempDir(), "spool"), away: away}
	s.exec(`alter table effects add column place bigserial, add column queue text`)
	s.on(book)
	s.spool = openSpool(t, s.dir)
	s.inbox.Spool = s.spool
	return s
}

func newSpoolApp(t *testing.T) *spoolApp {
	t.Helper()
	return openSpoolApp(t, asUsual)
}

func openSpool(t *testing.T, dir string) *idem.Spool {
	t.Helper()
	spool, err := idem.OpenSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	return spool
}

// book is a handler whose effects tell the order.
func book(ctx context.Context, tx pgx.Tx, n *note) error {
	_, err := tx.Exec(ctx, `insert into effects (event, queue) values ($1, $2)`, n.ID, n.Order)
	return err
}

// accept gives the inbox events one after the other, and checks what becomes of them.
func (s *spoolApp) accept(want idem.Outcome, events ...idem.Event) {
	s.Helper()
	for _, e := range events {
		o, err := s.inbox.Accept(s.Context(), e)
		if o != want || (err != nil) == want.Acknowledged() {
			s.Fatalf("Accept(%s) = %s, %v, want %s\n%s", e.ID, o, err, want, s.logged())
		}
	}
}

// files are the names of the spool's files, by their endings.
func (s *spoolApp) files(ending string) []string {
	s.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, "*"+ending))
	if err != nil {
		s.Fatal(err)
	}
	return names
}

// untilLogged waits for a line of the log.
func (s *spoolApp) untilLogged(what string) {
	s.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(s.logged(), what); runtime.Gosched() {
		if time.Now().After(deadline) {
			s.Fatalf("it never logged %q:\n%s", what, s.logged())
		}
	}
}

// untilDrained waits until the spool is empty, and events go to Postgres.
func (s *spoolApp) untilDrained() {
	s.Helper()
	for deadline := time.Now().Add(patience); s.spool.Spooling(); runtime.Gosched() {
		if time.Now().After(deadline) {
			s.Fatalf("the spool has %d events:\n%s", s.spool.Spooled(), s.logged())
		}
	}
	if names := s.files(".spool"); len(names) > 0 {
		s.Errorf("files are left: %q", names)
	}
}

// wantOrder checks that each event has one effect, in this order.
func (s *spoolApp) wantOrder(ids ...string) {
	s.Helper()
	got := queryOne[[]string](s.app, `select coalesce(array_agg(event order by place), '{}') from effects`)
	if diff := cmp.Diff(ids, got); diff != "" {
		s.Errorf("effects, in their order (-want +got):\n%s", diff)
	}
}

func TestSpoolKeepsEventsWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.wantAnswer(paid("1"), http.StatusOK)
	s.away.Store(true)
	for _, id := range []string{"2", "3", "2", "1"} { // the provider delivers two of them again
		s.wantAnswer(paid(id), http.StatusOK)
	}
	s.away.Store(false)
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
		{ID: "late", Type: "new", OccurredAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -12*3600)), Payload: []byte(`{}`)},
		{Payload: []byte("no id\n\n")},
	}
	const stored = `select string_agg(concat_ws('|', event, type, key, lane, occurred_at, body_hash, encode(body, 'hex')), E'\n' order by event)
		from idem_events join idem_payloads using (event)`
	s.accept(idem.Pending, events...)
	want := queryOne[string](s.app, stored)
	s.exec(`delete from idem_events; delete from idem_payloads`)
	s.away.Store(true)
	s.accept(idem.Spooled, events...)
	s.away.Store(false)
	s.untilDrained()
	if diff := cmp.Diff(want, queryOne[string](s.app, stored)); diff != "" {
		t.Error("what is stored (-directly +by the spool):\n" + diff)
	}
}

// deliverUntil has deliverers send the events of an entity each, one after the
// other and without the provider's time, and again what was not acknowledged, until
// stop. It returns how many there are.
func (s *spoolApp) deliverUntil(ctx context.Context, entities int) (wait func() int) {
	var deliverers sync.WaitGroup
	var events atomic.Int64
	for k := range entities {
		deliverers.Go(func() {
			for n := k; ctx.Err() == nil; n += entities {
				e := identify(fmt.Appendf(nil, `{"id":"%d","type":"paid","order":"o%d"}`, n, k))
				for o := idem.Retrying; !o.Acknowledged(); {
					o, _ = s.inbox.Accept(s.Context(), e)
				}
				events.Add(1)
			}
		})
	}
	return func() int {
		deliverers.Wait()
		return int(events.Load())
	}
}

// outage has Postgres go, and come back once so many events are spooled, while
// they arrive; and waits until they go to Postgres again.
func (s *spoolApp) outage(events int) {
	s.Helper()
	const drained = "spool is drained"
	before := strings.Count(s.logged(), drained)
	s.away.Store(true)
	for s.spool.Spooled() < events {
		runtime.Gosched()
	}
	s.away.Store(false)
	for deadline := time.Now().Add(patience); strings.Count(s.logged(), drained) == before; runtime.Gosched() {
		if time.Now().After(deadline) {
			s.Fatalf("the spool has %d events", s.spool.Spooled())
		}
	}
}

// The workers go on meanwhile: an event that passed an earlier one would be done
// before it.
func TestOrderIsKeptWhilePostgresGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := openSpoolApp(t, func(c *pgxpool.Config) { c.MaxConns = 8 })
	s.start(s.inbox)
	ctx, stop := context.WithCancel(t.Context())
	events := s.deliverUntil(ctx, 4)
	for range 4 {
		s.outage(50)
	}
	stop()
	want := events()
	s.untilDrained()
	s.until(`select not exists (select from idem_payloads)`)
	s.wantEffects(want)
	wantEachOnceInOrder(s.app)
}

// Events that keep arriving do not keep the spool from getting empty.
func TestSpoolGetsEmptyWhileEventsArrive(t *testing.T) {
	t.Parallel()
	s := openSpoolApp(t, func(c *pgxpool.Config) { c.MaxConns = 8 })
	ctx, stop := context.WithCancel(t.Context())
	events := s.deliverUntil(ctx, 32)
	s.outage(2000)
	stop()
	want := events()
	s.untilDrained()
	if n := queryOne[int](s.app, `select count(*) from idem_events`); n != want {
		t.Errorf("%d events are stored, want %d", n, want)
	}
}

func TestSpoolTakesEventsForWhateverReasonPostgresDoesNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason   string
		set      func(*pgxpool.Config)
		from, to func(*spoolApp)
	}{
		"read-only": {
			"a replica, or a primary during a failover", func(c *pgxpool.Config) { c.MaxConns = 1 },
			func(s *spoolApp) { s.exec(`set default_transaction_read_only = on`) },
			func(s *spoolApp) { s.exec(`set default_transaction_read_only = off`) },
		},
		"no tables": {
			"a migration that did not run", asUsual,
			func(s *spoolApp) { s.exec(`alter table idem_events rename to elsewhere`) },
			func(s *spoolApp) { s.exec(`alter table elsewhere rename to idem_events`) },
		},
		"an error of the application's own": {
			"a trigger that fails", asUsual,
			func(s *spoolApp) {
				s.exec(`create function fail() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
					create trigger fail before insert on idem_payloads for each row execute function fail()`)
			},
			func(s *spoolApp) { s.exec(`drop trigger fail on idem_payloads`) },
		},
		"pool exhausted": {
			"the application uses all connections", func(c *pgxpool.Config) { c.MaxConns = 1 },
			func(s *spoolApp) { s.busy = s.acquire() },
			func(s *spoolApp) { s.busy.Release() },
		},
		"hanging": {
			"a lock, or a network that swallows packets", asUsual,
			func(s *spoolApp) { s.release = s.hold() },
			func(s *spoolApp) { s.release() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSpoolApp(t, c.set)
			s.accept(idem.Pending, letter("1", "o1", 0))
			c.from(s)
			start := time.Now()
			s.accept(idem.Spooled, letter("2", "o1", 0))
			first := time.Since(start)
			start = time.Now()
			s.accept(idem.Spooled, letter("3", "o1", 0), letter("4", "o2", 0), letter("2", "o1", 0))
			if rest := time.Since(start); first > 7*time.Second || rest > 4*time.Second {
				t.Errorf("%s: the first was answered after %s, three more after %s: only one may wait for Postgres", c.reason, first, rest)
			}
			c.to(s)
			s.untilDrained()
			s.accept(idem.Pending, letter("5", "o1", 0))
			s.inbox.Workers = 1
			s.drain()
			s.wantEffects(5)
			wantEachOnceInOrder(s.app)
		})
	}
}

func (s *spoolApp) acquire() *pgxpool.Conn {
	s.Helper()
	conn, err := s.pool.Acquire(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return conn
}

// A network forgets the connections: nothing is answered, and nobody is told.
func TestSpoolTakesEventsWhenTheNetworkForgetsEveryConnection(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	s := openSpoolApp(t, proxy.Through)
	s.accept(idem.Pending, letter("1", "o1", 0))
	proxy.Forget()
	var deliveries sync.WaitGroup
	for n := range 20 {
		deliveries.Go(func() { s.wantAnswer(fmt.Sprintf(`{"id":"%d","type":"paid","order":"o%d"}`, n+2, n), http.StatusOK) })
	}
	deliveries.Wait()
	s.untilDrained()
	s.drain()
	s.wantEffects(21)
}

func TestEventThatNeitherStoreTakesIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.away.Store(true)
	s.spool.MaxBytes = 400 // two events
	s.accept(idem.Spooled, letter("1", "o1", 0), letter("2", "o2", 0))
	for range 2 {
		s.wantAnswer(paid("3"), http.StatusServiceUnavailable)
	}
	if !strings.Contains(s.logged(), "it is full: raise MaxBytes") {
		t.Errorf("nothing says that it is full:\n%s", s.logged())
	}
	s.away.Store(false)
	s.untilDrained()
	s.wantAnswer(paid("3"), http.StatusOK)
	s.drain()
	s.wantEffects(3)
}

// Once Postgres is back but not everything is drained, a full spool is no reason to
// refuse an event, unless it would pass an earlier one of its entity.
func TestFullSpoolKeepsTheOrderOfAnEntityOnly(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.exec(`create function fail() returns trigger language plpgsql as $$ begin
			if new.event = 'notes//1' then raise 'not now'; end if; return new; end $$;
		create trigger fail before insert on idem_events for each row execute function fail()`)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	s.spool.MaxBytes = 1
	s.accept(idem.Pending, letter("2", "o2", 0), letter("3", "o2", 0))
	s.accept(idem.Retrying, letter("4", "o1", 0))
	s.exec(`drop trigger fail on idem_events`)
	s.untilDrained()
	s.accept(idem.Pending, letter("4", "o1", 0))
	s.drain()
	s.wantEffects(4)
	wantEachOnceInOrder(s.app)
}

// An event that Postgres will never take holds up nobody, and is not thrown away.
func TestEventThatPostgresRefusesIsSetAside(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.exec(`alter table idem_events add constraint no_bad check (event not like '%bad%')`)
	s.away.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0), letter("bad", "o1", 0), letter("2", "o1", 0), letter("3", "o2", 0))
	s.away.Store(false)
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

// What is older than Retention may have been processed and forgotten.
func TestSpooledEventOlderThanRetentionIsSetAside(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.inbox.Retention = time.Nanosecond
	s.away.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	s.away.Store(false)
	s.untilDrained()
	s.wantState("1", "")
	if n := len(s.files(".refused")); n != 1 || !strings.Contains(s.logged(), "older than Retention") {
		t.Errorf("%d files are set aside, want 1:\n%s", n, s.logged())
	}
}

func TestHealthSaysWhatTheSpoolHolds(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	health := func() *idem.Health {
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
		runtime.Gosched()
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
	s.away.Store(true)
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
	s.away.Store(true)
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
	s.away.Store(true)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	if err := s.inbox.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "draining the spool") {
		t.Errorf("Drain = %v, want an error", err)
	}
	s.away.Store(false)
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
