package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/migrate"
	"github.com/paghooks/paghooks/internal/testkit"
)

// patience is far more than anything takes here.
const patience = time.Minute

// old is a process of the version before: it stores events while the next version migrates.
type old struct {
	*testing.T
	pool   *pgxpool.Pool
	inbox  *idem.Inbox
	stored int
}

func open(t *testing.T) *old {
	pool := testkit.Open(t)
	inbox := idem.NewInbox(pool, notes{new(idem.Routes)})
	inbox.Logger = nil
	return &old{T: t, pool: pool, inbox: inbox}
}

type notes struct{ *idem.Routes }

func (notes) Name() string { return "notes" }

func (notes) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, errors.New("nothing comes by HTTP")
}

// read opens a transaction that has read all tables, as pg_dump does, and returns its process.
func (s *old) read() (pid int32, end func()) {
	s.Helper()
	tx, err := s.pool.Begin(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if _, err := tx.Exec(s.Context(), `lock table idem_events, idem_payloads, idem_archive in access share mode`); err != nil {
		s.Fatal(err)
	}
	if err := tx.QueryRow(s.Context(), `select pg_backend_pid()`).Scan(&pid); err != nil {
		s.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = tx.Rollback(context.Background()) })
	s.Cleanup(end)
	return pid, end
}

// untilWaiting returns once a statement waits for the lock of a table.
func (s *old) untilWaiting() {
	s.Helper()
	const waits = `select exists (select from pg_locks where not granted and relation in ('idem_events'::regclass, 'idem_payloads'::regclass))`
	for yes := false; !yes; time.Sleep(time.Millisecond) {
		if err := s.pool.QueryRow(s.Context(), waits).Scan(&yes); err != nil {
			s.Fatal(err)
		}
	}
}

// store stores a new event, as a delivery does.
func (s *old) store() {
	s.Helper()
	s.stored++
	e := idem.Event{ID: fmt.Sprint("e", s.stored), Type: "paid", Key: "o1", Payload: []byte("{}")}
	if o, err := s.inbox.Accept(s.Context(), e); o != idem.Pending || err != nil {
		s.Fatalf("event %d of the old process is %s, %v", s.stored, o, err)
	}
}

// next returns the migrations of a later version, which changes the tables.
func next() fstest.MapFS {
	return fstest.MapFS{"migrations/90001_next.sql": {Data: []byte(`
		alter table idem_payloads add column region text;
		alter table idem_events add column region text`)}}
}

// logs has slog.Default write to the text that it returns.
func logs(t *testing.T) *text {
	said, before := new(text), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(said, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return said
}

type text struct {
	mu sync.Mutex
	bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Buffer.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Buffer.String()
}

func TestATransactionInWhichAMigrationGetsNoLockGoesOn(t *testing.T) {
	s := open(t)
	_, end := s.read()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `set local lock_timeout = '17s'`); err != nil {
		t.Fatal(err)
	}
	logs(t)
	if err := migrate.Apply(t.Context(), tx, "", next(), 0); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("the error is %v", err)
	}
	s.wantTimeout(tx, "17s")
	end()
	if err := migrate.Apply(t.Context(), tx, "", next(), 0); err != nil {
		t.Error(err)
	}
	s.wantTimeout(tx, "17s")
}

func (s *old) wantTimeout(tx pgx.Tx, want string) {
	s.Helper()
	var got string
	if err := tx.QueryRow(s.Context(), `show lock_timeout`).Scan(&got); err != nil || got != want {
		s.Errorf("lock_timeout is %q, %v, want %q", got, err, want)
	}
}

// Its files have numbers of today's, and made the ids of the audit trail by a sequence.
func TestTheTablesOfAVersionThatWasNotReleasedAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	if _, err := s.pool.Exec(t.Context(), `alter table idem_audit alter id add generated always as identity`); err != nil {
		t.Fatal(err)
	}
	if err := idem.Migrate(t.Context(), s.pool); err == nil || !strings.Contains(err.Error(), "before v0.1.0") {
		t.Errorf("Migrate = %v, want an error that says what to do with the tables", err)
	}
}
