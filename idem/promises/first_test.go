package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
)

// newFirstApp is an app whose deliveries go to an inbox that works first, beside workers that are alive elsewhere.
func newFirstApp(t *testing.T) *app {
	t.Helper()
	s := newInboxApp(t)
	s.Inbox.WorkFirst = true
	s.WorkersElsewhere("notes")
	return s
}

// The try counts nothing: the first attempt of the workers is number one.
func TestFirstTryThatFailsIsStoredDueAndCountsNothing(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]idem.Handler[*note]{
		"an error": payAndFail,
		"a panic":  func(context.Context, pgx.Tx, *note) error { panic("nil order") },
		"no retry": func(context.Context, pgx.Tx, *note) error { return idem.NoRetry(errors.New("no such order")) },
		"a time": func(context.Context, pgx.Tx, *note) error {
			return idem.RetryAt(time.Now().Add(time.Hour), errors.New("closed"))
		},
		"AnswerWithin is over": func(ctx context.Context, tx pgx.Tx, n *note) error {
			_, err := tx.Exec(ctx, `select pg_sleep(60)`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFirstApp(t)
			if name == "AnswerWithin is over" {
				s.Inbox.AnswerWithin = 2 * time.Second // in which it begins
			}
			runs := 0
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if runs++; runs == 1 {
					return fails(ctx, tx, n)
				}
				return pay(ctx, tx, n)
			})
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantRow("e1", "(state, attempts, crashes, starts, last_error)", "(pending,0,0,0,)")
			s.WantEffects(0)
			if o := s.Outcomes(); len(o) != 1 || o[0] != idem.Pending || s.Observed()[0].Err == nil {
				t.Errorf("observed %v, want one that is pending, with the error of its try", o)
			}
			s.Drain(1)
			s.WantEffects(1)
			s.WantState("e1", idem.StateDone)
		})
	}
}

// Other forms of the same wait for workers, and the delivery waits for none of them.
func TestFirstTryThatMayNotBeginIsStored(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(s *app){
		"an earlier event is pending": func(s *app) {
			s.Exec(earlierEvent)
			s.Exec(`update idem_payloads set due_at = now() + interval '1 hour'`)
		},
		"an earlier event is parked": func(s *app) {
			s.Exec(earlierEvent)
			s.Exec(`update idem_events set state = 'parked'; update idem_payloads set due_at = null`)
		},
		"no connection is free": func(s *app) {
			for range 3 {
				conn, err := s.Pool.Acquire(s.Context())
				if err != nil {
					s.Fatal(err)
				}
				s.Cleanup(conn.Release)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFirstApp(t)
			s.On(func(context.Context, pgx.Tx, *note) error { t.Error("it was tried"); return nil })
			before(s)
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantRow("e1", "(state, attempts)", "(pending,0)")
		})
	}
}

// earlierEvent is an event of entity o1.
const earlierEvent = `
insert into idem_events (event, type, key, state) values ('notes//e0', 'paid', 'o1', 'pending');
insert into idem_payloads (event, source, lane, due_at, received_at, body) values ('notes//e0', 'notes', 'notes//o1', now(), now() - interval '1 minute', '{}')`

// Nobody would process it.
func TestFirstTryThatFailsWhereNoWorkersRunIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox.WorkFirst = true
	fails := true
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		switch {
		case strings.HasPrefix(n.ID, "final"):
			return idem.NoRetry(errors.New("no such order"))
		case fails:
			return payAndFail(ctx, tx, n)
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.WantState("e1", "")
	fails = false
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantState("e1", idem.StateDone)
	s.WantAnswer(about("final", "paid", "o2"), http.StatusOK)
	s.WantState("final", idem.StateParked)
	s.WantAnswer(about("final", "paid", "o2"), http.StatusOK) // a duplicate: it is stored
	s.WantState("final", idem.StateParked)
	s.Inbox.AnswerWithin = time.Second // the time for which it waits
	s.WantAnswer(about("later", "paid", "o2"), http.StatusServiceUnavailable)
	s.WantState("later", "")
	s.WantEffects(1)
	s.Inbox.PassParked = true
	s.WantAnswer(about("final2", "paid", "o3"), http.StatusOK)
	s.WantAnswer(about("later", "paid", "o3"), http.StatusOK)
	s.WantState("later", idem.StateDone)
}

// If workers do run, elsewhere, the provider delivers it once more.
func TestFirstTryThatFailsWhereNobodyKnowsOfWorkersIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox.WorkFirst = true
	s.On(payAndFail)
	s.Session(`begin; lock table idem_workers in access exclusive mode`)
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.WantState("e1", "")
}

// Nothing is stored, so it comes again while its handler still runs.
func TestFirstTryThatComesAgainWhileItsHandlerRunsWaits(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.First.AnswerWithin = time.Second // in which it begins
	release := make(chan struct{})
	var runs atomic.Int32
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs.Add(1) == 1 {
			<-release
		}
		return pay(ctx, tx, n)
	})
	for range 2 {
		s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("its handler ran %d times at once", n)
	}
	close(release)
	s.First.AnswerWithin = time.Minute
	s.WantAnswer(paid("e1"), http.StatusOK) // once the first one has returned
	s.WantEffects(1)
}

// Its place is that of its arrival, not of its storing.
func TestFirstTryThatFailsKeepsItsPlaceBeforeWhatArrivedMeanwhile(t *testing.T) {
	t.Parallel()
	for reason, fail := range map[string]func(context.Context, pgx.Tx) error{
		"it is not done":               func(context.Context, pgx.Tx) error { return errors.New("no such order") },
		"its second run may not begin": executing(`do $$ begin raise 'once more' using errcode = '40001'; end $$`),
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			s := newFirstApp(t)
			entered, release := make(chan struct{}), make(chan struct{})
			fails := true
			var order []string
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID == "e1" && fails {
					fails = false
					close(entered)
					<-release
					return fail(ctx, tx)
				}
				order = append(order, n.ID)
				return pay(ctx, tx, n)
			})
			var first sync.WaitGroup
			first.Go(func() { s.WantAnswer(paid("e1"), http.StatusOK) })
			<-entered
			s.WantAnswer(paid("e2"), http.StatusOK) // stored: e1 is being processed
			close(release)
			first.Wait()
			s.Drain(2)
			if diff := cmp.Diff([]string{"e1", "e2"}, order); diff != "" {
				t.Error("the order (-want +got):\n" + diff)
			}
		})
	}
}

// Sixteen handlers wait for one row of the application's. First tries leave a connection to store events with.
func TestHandlersThatWaitForOneRowLeaveAConnectionToStoreEvents(t *testing.T) {
	t.Parallel()
	s := newFirstApp(t)
	s.Inbox.AnswerWithin = time.Second
	s.Exec(`create table shop (id int primary key); insert into shop values (1)`)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if _, err := tx.Exec(ctx, `select from shop where id = 1 for update`); err != nil {
			return err
		}
		return pay(ctx, tx, n)
	})
	holder := s.Session(`begin; select from shop for update`)
	stop := s.Start(s.Inbox)
	defer stop()
	var deliveries sync.WaitGroup
	for n := range 16 {
		deliveries.Go(func() { s.WantAnswer(about(fmt.Sprint(n), "paid", fmt.Sprint(n)), http.StatusOK) })
	}
	deliveries.Wait()
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	s.Until(`select count(*) = 16 from effects`)
}

// The handler has taken the transaction away. Its event is done, and an error that nobody sees would stay for ever.
func TestHandlerThatCommitsByItselfInAFirstTryIsToldBesideWorkers(t *testing.T) {
	t.Parallel()
	s := newFirstApp(t)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		_, err := tx.Conn().Exec(ctx, `commit`)
		return err
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantState("e1", idem.StateDone)
	s.WantEffects(1)
	if !strings.Contains(s.Logged(), "level=ERROR") {
		t.Errorf("nobody is told:\n%s", s.Logged())
	}
}

// Each that is stored instead costs three times as much, when there is the least time for it.
func TestFirstTriesOfABurstWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	const burst, atOnce = 24, 3 // the pool has four connections, one of them to store events with
	s := newFirstApp(t)
	var routed sync.WaitGroup
	routed.Add(burst)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		routed.Wait()
		return pay(ctx, tx, n)
	})
	inbox := idem.NewInbox(s.Pool, routing{s.Notes, routed.Done})
	inbox.WorkFirst, inbox.Logger = true, s.Inbox.Logger
	var deliveries sync.WaitGroup
	var done atomic.Int32
	for n := range burst {
		deliveries.Go(func() {
			outcome, err := inbox.Accept(t.Context(), identify([]byte(about(fmt.Sprint(n), "paid", fmt.Sprint(n)))))
			if err != nil {
				t.Error(err)
			}
			if outcome == idem.Done {
				done.Add(1)
			}
		})
	}
	deliveries.Wait()
	if n := done.Load(); n <= atOnce { // most or all: a machine can stand still for longer than a turn is waited for
		t.Errorf("%d of %d were done at the first try\n%s", n, burst, s.Logged())
	}
}

// routing tells when an event has its handler.
type routing struct {
	*notes
	routed func()
}

func (r routing) Route(e idem.Event) (idem.Work, error) {
	defer r.routed()
	return r.notes.Route(e)
}

// Its handler is still calling a bank, say: the workers of this process leave the event alone.
func TestFirstTryWhoseHandlerDoesNotReturnIsNotRepeatedWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newFirstApp(t)
	s.Inbox.AnswerWithin = time.Second // in which it begins
	release := make(chan struct{})
	var running, most, runs atomic.Int32
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		defer running.Add(-1)
		most.Store(max(most.Load(), running.Add(1)))
		if runs.Add(1) == 1 {
			<-release
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantState("e1", idem.StatePending)
	s.WantAnswer(paid("e1"), http.StatusOK) // a duplicate
	if sum, err := s.Inbox.Replay(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}}); counted(sum) != counted(idem.Replayed{Left: 1}) || err != nil {
		t.Errorf("Replay = %+v, %v, want it left", sum, err)
	}
	s.Start(s.Inbox)
	s.Until(`select starts > 3 from idem_events`) // workers have met it again and again
	close(release)
	s.WantWorked(idem.Done)
	if most.Load() != 1 || runs.Load() != 2 {
		t.Errorf("its handler ran %d times, %d at once, want twice and one at a time", runs.Load(), most.Load())
	}
	s.WantEffects(1)
}

// Without an end, its event would wait for ever, and its entity behind it.
func TestFirstTryWhoseHandlerNeverReturnsIsTakenOverAfterTimeout(t *testing.T) {
	t.Parallel()
	s := newFirstApp(t)
	s.Inbox.AnswerWithin, s.Inbox.Timeout = time.Second, 2*time.Second
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	var runs atomic.Int32
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs.Add(1) == 1 {
			<-never
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantState("e1", idem.StatePending)
	s.Start(s.Inbox)
	s.WantWorked(idem.Done)
	s.WantEffects(1)
}

// Of a handler that is slower, the work outside of the transaction is done twice.
func TestHealthIsRedWhereFirstTriesTakeTooLong(t *testing.T) {
	t.Parallel()
	s := newFirstApp(t)
	var slow atomic.Int32
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if strings.HasPrefix(n.ID, "slow") {
			slow.Add(1)
			_, err := tx.Exec(ctx, `select pg_sleep(60)`)
			return err
		}
		return nil
	})
	says := func() (c check.Result) {
		for _, c = range s.Inbox.Examine(t.Context(), check.Limits{}) {
			if c.Name == "answer within" {
				return c
			}
		}
		t.Error("there is no such check")
		return c
	}
	slowly := func() {
		s.Inbox.AnswerWithin = 50 * time.Millisecond
		for before, n := slow.Load(), 0; slow.Load() == before; n++ { // the time may be over before the handler runs
			id := fmt.Sprint("slow", before, n)
			s.WantAnswer(about(id, "paid", id), http.StatusOK)
		}
	}
	slowly()
	for n := range 19 {
		s.Inbox.AnswerWithin = time.Second
		s.WantAnswer(about(fmt.Sprint(n), "paid", fmt.Sprint(n)), http.StatusOK)
	}
	if c := says(); !c.Healthy {
		t.Errorf("one of twenty is slow, and it says %+v", c)
	}
	slowly()
	if c := says(); c.Healthy || !strings.Contains(c.Says, "of the last 21 first tries 2 took too long") {
		t.Errorf("two of twenty-one are slow, and it says %+v", c)
	}
}
