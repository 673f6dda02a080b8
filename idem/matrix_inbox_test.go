package idem_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// inboxPaths are the rows of an inbox: of what arrives, of what its workers do,
// and of what operators do.
var inboxPaths = slices.Concat(arrivalPaths, workPaths, operatorPaths)

var arrivalPaths = []path{
	{name: "an arrival", handler: pay, before: nothingYet, run: store, want: pending, inbox: true},
	{name: "an arrival again", handler: pay, before: storedOnce, run: store, want: pending, inbox: true},
	{name: "an arrival that failed inline", handler: pay, before: failedOnce, run: store, want: pending, inbox: true},
	{name: "arrivals at once", handler: pay, before: nothingYet, run: storeTogether, want: pending, inbox: true, next: 2},
	{name: "an event that inline mode hands over", handler: payAndFail, before: failedOnce, run: handOver, want: pending, inbox: true},
}

var workPaths = []path{
	{name: "work", handler: pay, before: twoStored, run: runWorkers, want: done, inbox: true, next: 1, later: true},
	{name: "work after a crash", handler: pay, before: crashedOnce, run: runWorkers, want: done, inbox: true, next: 1, later: true, claimed: true, crashes: 1},
	{name: "work in queued statements", handler: payQueued, before: twoStored, run: runWorkers, want: done, inbox: true, next: 1, later: true, claimed: true},
	{name: "work that another follows", handler: pay, before: twoKeysStored, run: runChain, want: done, inbox: true, later: true, claimed: true, chained: true},
	{name: "queued work that another follows", handler: payQueued, before: twoKeysStored, run: runChain, want: done, inbox: true, later: true, claimed: true, chained: true},
	{name: "work that fails", handler: payAndFail, before: twoStored, run: runWorkers, want: pending, inbox: true, next: 1, later: true, claimed: true},
	{name: "work without a handler", before: storedOnce, run: runWorkers, want: unhandled, inbox: true, later: true, claimed: true},
	{name: "work whose key is busy", handler: pay, before: twoStored, run: workWhileBusy, want: pending, inbox: true, next: 1, later: true, claimed: true},
}

var operatorPaths = []path{
	{name: "an event that is requeued", handler: pay, before: parkedOnce, run: requeue, want: pending, inbox: true},
	{name: "an event that is discarded", handler: pay, before: parkedOnce, run: discard, want: discarded, inbox: true},
}

var (
	pending   = kept{State: idem.StatePending, Body: true}
	taken     = kept{State: idem.StatePending, Body: true, Claimed: true}
	discarded = kept{State: idem.StateDiscarded}
)

// behindIt is the id of the n-th event behind another.
func behindIt(id string, n int) string { return fmt.Sprintf("%s.%d", id, n) }

// newInbox is an inbox that does nothing by itself, and tries again at once.
func newInbox(p *pool, source *notes) *idem.Inbox {
	i := idem.NewInbox(p, source)
	i.Logger = nil
	i.PollOnly, i.Poll = true, time.Hour
	i.Backoff = func(int) time.Duration { return 0 }
	return i
}

func payQueued(ctx context.Context, _ pgx.Tx, n *note) error {
	idem.ExecAtCommit(ctx, insertEffect, n.ID)
	return nil
}

func storedOnce(s *shop, id string) {
	s.Helper()
	i := newInbox(s.pool, path{}.source())
	if o, err := i.Accept(s.Context(), identify([]byte(paid(id)))); o != idem.Pending {
		s.Fatalf("the event is %s beforehand, %v, want %s", o, err, idem.Pending)
	}
}

func twoStored(s *shop, id string) {
	storedOnce(s, id)
	storedOnce(s, behindIt(id, 1))
}

// twoKeysStored stores an event, and one of another key.
func twoKeysStored(s *shop, id string) {
	storedOnce(s, id)
	if o, err := newInbox(s.pool, path{}.source()).Accept(s.Context(), letter(behindIt(id, 1), "o2", 0)); o != idem.Pending {
		s.Fatalf("the other event is %s beforehand, %v, want %s", o, err, idem.Pending)
	}
}

// crashedOnce leaves the event with a worker that is no more.
func crashedOnce(s *shop, id string) {
	twoStored(s, id)
	if _, err := s.pool.Exec(s.Context(), `insert into idem_claims values ('notes//' || $1, now())`, id); err != nil {
		s.Fatal(err)
	}
}

func store(ctx context.Context, p *pool, source *notes, id string) (idem.Outcome, error) {
	i := newInbox(p, source)
	return deliverTo(ctx, i, &i.Processor, id)
}

// storeTogether has the second to fourth delivery arrive while the first is
// being stored: they go together. The fourth is a twin of the third.
func storeTogether(ctx context.Context, p *pool, source *notes, id string) (idem.Outcome, error) {
	conn, err := p.Acquire(ctx) // the only one
	if err != nil {
		return idem.Retrying, nil
	}
	i := newInbox(p, source)
	ids := []string{id, behindIt(id, 1), behindIt(id, 2), behindIt(id, 2)}
	outcomes := make(chan idem.Outcome, len(ids))
	for n, id := range ids {
		go func() {
			e := identify([]byte(paid(id)))
			e.OccurredAt = time.Unix(int64(n), 0) // so that one that comes again has its place
			o, _ := i.Accept(ctx, e)
			outcomes <- o
		}()
		for waiting, storing := i.Waiting(); waiting != n || !storing; waiting, storing = i.Waiting() {
			runtime.Gosched()
		}
	}
	conn.Release()
	all := idem.Pending
	for range ids {
		if o := <-outcomes; !o.Acknowledged() {
			all = idem.Retrying
		}
	}
	return all, nil
}

func handOver(ctx context.Context, p *pool, source *notes, id string) (idem.Outcome, error) {
	processor := idem.NewProcessor(p, source)
	processor.HandToInbox = true
	return deliverTo(ctx, processor, processor, id)
}

// runWorkers has workers work on what is first, and stops them once they have. The
// outcome is what the provider was told before.
func runWorkers(ctx context.Context, p *pool, source *notes, _ string) (idem.Outcome, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	i := newInbox(p, source)
	i.Workers = 2 // one for an event, one for a rest
	i.Observe = func(context.Context, idem.Observation) { stop() }
	err := i.Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.Join(err, errors.New("the workers have not come to anything in a minute"))
	}
	return idem.Pending, err
}

// runChain has one worker work on the first event of each key.
func runChain(ctx context.Context, p *pool, source *notes, _ string) (idem.Outcome, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	return idem.Pending, errors.Join(idem.WorkOff(ctx, newInbox(p, source), 10), ctx.Err())
}

// workWhileBusy is runWorkers while another process works on an event of the key.
func workWhileBusy(ctx context.Context, p *pool, source *notes, id string) (outcome idem.Outcome, err error) {
	config := p.Config().ConnConfig
	config.AfterNetConnect = nil // beside the proxy
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	const lock = `select pg_advisory_lock(hashtextextended('notes//o1', 'idem_events'::regclass::oid::bigint))`
	if _, err = conn.Exec(ctx, lock); err == nil {
		outcome, err = runWorkers(ctx, p, source, id)
	}
	return outcome, errors.Join(err, conn.Close(ctx))
}

func requeue(ctx context.Context, p *pool, source *notes, id string) (idem.Outcome, error) {
	return settled(newInbox(p, source).Requeue(ctx, p, idem.Filter{IDs: []string{id}}))
}

func discard(ctx context.Context, p *pool, source *notes, id string) (idem.Outcome, error) {
	return settled(newInbox(p, source).Discard(ctx, p, idem.Filter{IDs: []string{id}}, "it was paid by hand"))
}

// settled is what an operator knows of an event: one that is no longer there to
// be settled was so before.
func settled(n int64, err error) (idem.Outcome, error) {
	switch {
	case err != nil:
		return idem.Retrying, nil
	case n == 0:
		return idem.Duplicate, nil
	}
	return idem.Pending, nil
}
