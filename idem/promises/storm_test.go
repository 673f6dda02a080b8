package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// From inline mode to an inbox, back, and to an inbox again, each time with
// events of every kind that are not done.
func TestModeChangesWithEventsThatAreNotDoneAndLosesNone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	deploy := func(broken string) {
		s.Deploy(func(n *notes) {
			idem.Handle(&n.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.Order == broken {
					return errors.New("no such order")
				}
				return pay(ctx, tx, n)
			})
		})
	}
	acknowledged := make(map[string]bool)
	send := func(accept func(context.Context, idem.Event) (idem.Outcome, error), first, last int) {
		for i := first; i < last; i++ {
			e := letter(fmt.Sprint(i), fmt.Sprint("o", i%5), 0)
			if _, err := accept(t.Context(), e); err == nil {
				acknowledged[e.ID] = true
			}
		}
	}
	deploy("o0")
	send(s.First.Accept, 0, 20) // a fifth of them is to come again

	deploy("o1")
	s.openInbox()
	send(s.Inbox.Accept, 10, 40) // those of the first round that come again, and 20 new ones
	s.Drain(20 - 4 + 2 + 1)      // of o1 only the first is tried, and holds the others
	send(s.Inbox.Accept, 40, 50) // no worker runs now

	deploy("o2")
	s.First.AnswerWithin = 300 * time.Millisecond // for which those wait that may not begin: they come again
	send(s.First.Accept, 35, 60)

	deploy("")
	s.openInbox()
	s.Exec(`update idem_payloads set due_at = now() where due_at > now()`)
	for i := range 60 { // what was not acknowledged comes until it is
		if e := letter(fmt.Sprint(i), fmt.Sprint("o", i%5), 0); !acknowledged[e.ID] {
			if _, err := s.Inbox.Accept(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Drain(queryOne[int](s, `select count(*) from idem_events where state = 'pending'`))
	s.wantOneEffectEach(60)
}

// lanes is an application whose handlers fail often, and which many processes
// and impatient people work on at the same time. Its few entities have many
// events each.
type lanes struct {
	*app
	inboxes []*idem.Inbox
	calm    atomic.Bool // handlers do not fail any more
	repairs bool        // what is done by hand may find an event that workers do not
	running [laneCount]atomic.Int32
	stored  [laneCount]atomic.Int32 // events of each
}

func (l *lanes) handle(ctx context.Context, tx pgx.Tx, n *note) error {
	var lane int
	if _, err := fmt.Sscanf(n.Order, "lane-%d", &lane); err != nil {
		return err
	}
	if l.running[lane].Add(1) != 1 {
		l.Errorf("%s is processed at the same time as another event of its lane", n.ID)
	}
	leave := sync.OnceFunc(func() { l.running[lane].Add(-1) })
	defer leave()
	_, err := tx.Exec(ctx, `insert into effects (event, lane) values ($1, $2)`, n.ID, n.Order)
	if err != nil || l.calm.Load() {
		return err
	}
	switch failure := errors.New("no such order"); rand.N(8) {
	case 0, 1:
		return failure
	case 2, 3:
		return idem.NoRetry(failure)
	case 4:
		return idem.RetryAt(time.Now().Add(10*time.Millisecond), failure)
	case 5:
		leave() // an SQL error ends the transaction, and with it its locks
		_, err := tx.Exec(ctx, `do $$ begin raise 'again' using errcode = '40001'; end $$`)
		return err
	}
	return nil
}

func (l *lanes) anInbox() *idem.Inbox { return l.inboxes[rand.N(len(l.inboxes))] }

// storm delivers events to each lane in order, while people do what they can.
func (l *lanes) storm(events int) {
	l.Helper()
	l.calm.Store(false)
	over, done := make(chan struct{}), sync.WaitGroup{}
	for range 4 {
		done.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					l.meddle()
				}
			}
		})
	}
	var deliveries sync.WaitGroup
	for lane := range laneCount {
		deliveries.Go(func() {
			for range events {
				n := int(l.stored[lane].Load())
				want := []idem.Outcome{idem.Pending}
				o, err := l.anInbox().Accept(l.Context(), laneEvent(lane, n))
				for o == idem.Retrying { // the provider delivers again, and it may be stored
					want = append(want, idem.Duplicate)
					o, err = l.anInbox().Accept(l.Context(), laneEvent(lane, n))
				}
				if !slices.Contains(want, o) {
					l.Errorf("Accept = %s, %v", o, err)
				}
				l.stored[lane].Add(1)
				for range 4 { // meanwhile
					l.meddle()
				}
			}
		})
	}
	deliveries.Wait()
	close(over)
	done.Wait()
}

// meddle does one thing by hand. It may fail: an event may be somebody else's.
func (l *lanes) meddle() {
	lane := rand.N(laneCount)
	stored := int(l.stored[lane].Load())
	if stored == 0 {
		pause()
		return
	}
	e := laneEvent(lane, max(0, stored-1-rand.N(12)))
	waiting := idem.Filter{Keys: []string{e.Key}, States: []idem.State{idem.StatePending, idem.StateParked}}
	ctx, err := l.Context(), error(nil)
	choices := 32
	if l.repairs {
		choices = 40
	}
	switch n := rand.N(choices); {
	case n < 8:
		_, err = l.anInbox().Requeue(ctx, idem.Filter{Keys: []string{e.Key}})
	case n < 14:
		_, err = l.anInbox().Replay(ctx, idem.Filter{Keys: []string{e.Key}})
	case n < 18:
		_, err = l.anInbox().Discard(ctx, idem.Filter{IDs: []string{e.ID}, States: waiting.States}, "by hand")
	case n < 25:
		_, _ = l.First.Accept(ctx, e)
	case n < 32:
		_, _ = l.anInbox().Accept(ctx, e)
	case n < 36:
		_, err = l.First.Replay(ctx, waiting)
	case n < 38:
		_, err = l.anInbox().Requeue(ctx, waiting)
	default:
		_, err = l.anInbox().Prune(ctx)
	}
	if err != nil {
		l.Error(err)
	}
}

// settle has the workers finish. Only what is parked is requeued: what is pending
// they must find by themselves.
func (l *lanes) settle(round int) {
	l.Helper()
	l.calm.Store(true)
	const open = `select count(*) from idem_payloads`
	for deadline := time.Now().Add(patience); queryOne[int](l.app, open) > 0; pause() {
		if _, err := l.anInbox().Requeue(l.Context(), idem.Filter{}); err != nil {
			l.Fatal(err)
		}
		if time.Now().After(deadline) {
			l.Fatalf("round %d: events are left that nobody finds:\n%s", round, queryOne[string](l.app, `
select string_agg(concat_ws(' ', e.event, e.state, 'due', p.due_at, 'lane', p.lane, 'claimed', e.claimed_by, e.last_error), E'\n' order by p.lane, e.received_at)
from idem_payloads p join idem_events e using (event)`))
		}
	}
}

func (l *lanes) wantOneEffectEach() {
	l.Helper()
	const done = `select coalesce(array_agg(substring(event from '[^/]*$') order by event), '{}') from idem_events where state = 'done' and key = $1`
	const effects = `select coalesce(array_agg(event order by place), '{}') from effects where lane = $1`
	for lane := range laneCount {
		key := fmt.Sprintf("lane-%d", lane)
		want, got := queryOne[[]string](l.app, done, key), queryOne[[]string](l.app, effects, key)
		if diff := cmp.Diff(want, got); diff != "" {
			l.Errorf("effects of %s (-want +got):\n%s", key, diff)
		}
	}
	total := int32(0)
	for lane := range laneCount {
		total += l.stored[lane].Load()
	}
	const known = `select count(*) from idem_events where state in ('done', 'discarded')`
	if n := queryOne[int32](l.app, known); n != total {
		l.Errorf("%d events are done or discarded, want %d", n, total)
	}
}

const laneCount = 3

// laneEvent is one of a lane's. Half of the lanes have the provider's time.
func laneEvent(lane, n int) idem.Event {
	at := 0
	if lane%2 == 0 {
		at = n + 1
	}
	return letter(fmt.Sprintf("%d-%04d", lane, n), fmt.Sprintf("lane-%d", lane), at)
}

func openLanes(t *testing.T) *lanes {
	t.Helper()
	url := idemtest.URL(t)
	open := func() *pgxpool.Pool { return openPool(t, url, func(c *pgxpool.Config) { c.MaxConns = 6 }) }
	l := &lanes{app: openApp(t, open())}
	l.Exec(`alter table effects add column place bigserial, add column lane text`)
	l.On(l.handle)
	for range 3 {
		i := l.NewInbox(open())
		i.Workers, i.MaxAttempts, i.Logger, i.Observe = 3, 2, nil, nil
		i.Backoff = func(int) time.Duration { return rand.N(20 * time.Millisecond) }
		l.inboxes = append(l.inboxes, i)
		l.Start(i)
	}
	l.First = newFirst(open(), l.Notes)
	l.First.Logger = nil
	return l
}

// wantOneEffectEach checks that n events, and no others, have one effect each.
func (s *app) wantOneEffectEach(n int) {
	s.Helper()
	s.WantEffects(n)
	if got := queryOne[int](s, `select count(distinct event) from effects`); got != n {
		s.Errorf("%d events have an effect, want %d", got, n)
	}
	if got := queryOne[int](s, `select count(*) from idem_events where state = 'done'`); got != n {
		s.Errorf("%d events are done, want %d", got, n)
	}
	if left := queryOne[int](s, `select count(*) from idem_payloads`); left != 0 {
		s.Errorf("%d payloads are left", left)
	}
}
