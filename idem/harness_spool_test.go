package idem_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// spoolApp is an app whose inbox has a spool, and whose Postgres can be unavailable. What
// is done is noted with its place.
type spoolApp struct {
	*app
	dir   string
	spool *idem.Spool
	down  *atomic.Bool

	busy    *pgxpool.Conn // what keeps Postgres from taking events
	release func()
}

func openSpoolApp(t *testing.T, set func(*pgxpool.Config)) *spoolApp {
	t.Helper()
	down := new(atomic.Bool)
	s := &spoolApp{app: openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		takeDown(c, down)
		set(c)
	})), dir: filepath.Join(t.TempDir(), "spool"), down: down}
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
	for deadline := time.Now().Add(patience); !strings.Contains(s.logged(), what); pause() {
		if time.Now().After(deadline) {
			s.Fatalf("it never logged %q:\n%s", what, s.logged())
		}
	}
}

// untilDrained waits until the spool is empty, and events go to Postgres.
func (s *spoolApp) untilDrained() {
	s.Helper()
	for deadline := time.Now().Add(patience); s.spool.Spooling(); pause() {
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
