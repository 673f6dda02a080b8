package promises_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// The receiver is killed while its handler runs; another one gets the event
// when it is delivered again.
func TestReceiverThatIsKilledLeavesTheEventToTheNext(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s := openApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	s.On(pay)
	child := exec.Command(os.Args[0], "-test.run=^TestChildThatHandlesForever$")
	child.Env = append(os.Environ(), "IDEM_TEST_CHILD="+url)
	if said, err := startChild(child); err != nil || said != "in the handler" {
		t.Fatalf("the child said %q, %v", said, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantEffects(1)
}

// Every session ends, as it does in a crash of Postgres, while workers process and events arrive. With the tag long
// Postgres itself crashes.
func TestOrderOfAnEntityOutlivesTheEndOfEverySession(t *testing.T) {
	t.Parallel()
	s := openOrders(t, idemtest.URL(t), asUsual)
	s.outlives(80, func() error {
		tag, err := s.Session(`select`).Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where application_name = current_setting('application_name') and pid <> pg_backend_pid()`)
		if err == nil && tag.RowsAffected() == 0 {
			t.Error("no session has ended")
		}
		return err
	})
}

// outlives has workers process events of eight entities while they arrive, and a crash happen. All are done, each
// once and in the order of its entity.
func (s *app) outlives(events int, crash func() error) {
	s.Helper()
	s.Start(s.Inbox)
	stored := s.storeInOrder(events, 8)
	s.untilDone(events / 4)
	if err := crash(); err != nil {
		s.Fatal(err)
	}
	stored.Wait()
	s.Until(nothingLeft)
	s.WantEffects(events)
	wantEachOnceInOrder(s)
}

// openOrders is an app on a database that may fail, whose effects have a place.
// Each fourth attempt of its handler fails.
func openOrders(t *testing.T, url string, set func(*pgxpool.Config)) *app {
	t.Helper()
	s := openInboxApp(t, openPool(t, url, func(c *pgxpool.Config) {
		c.MaxConns = 8
		set(c)
	}))
	s.Exec(`alter table effects add column if not exists place bigserial, add column if not exists queue text`)
	var attempts atomic.Int64
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if _, err := tx.Exec(ctx, `insert into effects (event, queue) values ($1, $2)`, n.ID, n.Order); err != nil {
			return err
		}
		if attempts.Add(1)%4 == 0 {
			return errors.New("no such order yet")
		}
		return nil
	})
	return s
}

func asUsual(*pgxpool.Config) {}

// storeInOrder has events delivered, each until it is acknowledged, those of one
// entity one after the other.
func (s *app) storeInOrder(events, keys int) (stored *sync.WaitGroup) {
	stored = new(sync.WaitGroup)
	for key := range keys {
		stored.Go(func() {
			for n := key; n < events; n += keys {
				for o := idem.Retrying; !o.Acknowledged() && s.Context().Err() == nil; pause() {
					o, _ = s.Inbox.Accept(s.Context(), nth(n, keys))
				}
			}
		})
	}
	return stored
}

// untilDone waits for n attempts that succeed.
func (s *app) untilDone(n int) {
	s.Helper()
	for n > 0 {
		if s.Next().Outcome == idem.Done {
			n--
		}
	}
}

const nothingLeft = `select not exists (select from idem_events where state <> 'done')`
