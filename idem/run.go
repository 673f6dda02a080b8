package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

var errStopped = errors.New("the workers were stopped: the next ones go on with it")

// Run works on stored events until ctx ends. Call it in a goroutine, any number
// of times, in any number of processes: each event is worked on once, and those
// of one Key one after the other, by the provider's time and then by arrival.
// Keys do not wait for each other.
//
// When ctx ends no further event is begun, running handlers have StopTimeout to
// finish, and Run returns nil; an error tells that handlers did not return.
// While Postgres is away Run logs that, and goes on when it is back.
func (i *Inbox) Run(ctx context.Context) error {
	r, cancel := i.running(ctx, i.Workers*(1+maxAhead))
	defer cancel(nil)
	for range i.Workers {
		go r.work()
	}
	listening := i.listen(ctx)
	defer func() { <-listening }()
	for failed := 1; ctx.Err() == nil; failed++ {
		err := r.step(ctx)
		if err == nil {
			failed = 0
		} else if ctx.Err() == nil {
			i.logError(ctx, "webhook workers cannot reach the events", err)
			pause(ctx, failed)
		}
	}
	return r.stop(cancel)
}

// running prepares a Run that takes up to n events at a time. cancel ends its
// handlers.
func (i *Inbox) running(ctx context.Context, n int) (r *running, cancel context.CancelCauseFunc) {
	working, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	return &running{
		inbox:    i,
		ctx:      working,
		stopping: ctx.Done(),
		claims:   make(chan *claim, n),
		settled:  make(chan struct{}, 1),
		last:     i.firstQueue(),
	}, cancel
}

// firstQueue is where the source's ring of queues begins: before all of them.
func (i *Inbox) firstQueue() string { return i.source.Name() + "/" }

// running is one call of Run.
type running struct {
	inbox    *Inbox
	ctx      context.Context // of the handlers
	stopping <-chan struct{} // closed when no further one is to begin
	claims   chan *claim     // taken, and not begun
	claimed  time.Time       // when the last of them were
	ahead    int             // how many may be taken before a worker is free for them
	open     atomic.Int64    // taken, and not settled
	settled  chan struct{}   // tells that some were settled
	last     string          // the queue to go on after

	mu   sync.Mutex
	done []string // rows of events whose claims are to be ended
}

// While handlers are quick, events are taken ahead for them: one statement for
// many. Slow ones take nothing from the workers of other processes.
const (
	maxAhead = 4 // events for each worker
	quick    = 50 * time.Millisecond
)

// room is how many events to take now.
func (r *running) room() int {
	waiting := len(r.claims)
	switch {
	case time.Since(r.claimed) > quick:
		r.ahead = 0
	case waiting > r.ahead/2:
		return 0
	case int(r.open.Load()) < r.inbox.Workers:
		r.ahead = min(r.ahead+r.inbox.Workers, maxAhead*r.inbox.Workers)
	}
	return r.inbox.Workers + r.ahead - int(r.open.Load())
}

// step takes events for the workers, or waits until there may be any.
func (r *running) step(ctx context.Context) error {
	room := r.room()
	if room <= 0 {
		return r.wait(ctx, nil)
	}
	start, from := time.Now(), r.last
	claims, err := r.inbox.claimHeads(ctx, from, room, r.takeDone())
	took := time.Since(start)
	if err != nil {
		return err
	}
	for _, c := range claims {
		r.last = c.queue
		if !c.until.IsZero() {
			r.begin(c)
		}
	}
	for _, c := range claims {
		if c.suspect {
			if err := r.alone(ctx, c); err != nil {
				return err
			}
		}
	}
	if len(claims) == room {
		signal(r.inbox.wake) // there may be more, for another Run
		return nil
	}
	r.last = r.inbox.firstQueue()
	if from != r.last {
		return nil // on with the ring's beginning
	}
	if err := r.wait(ctx, r.inbox.wake); err != nil {
		return err
	}
	if took > quick {
		rest(ctx, min(9*took, r.inbox.Poll, time.Second))
	} else {
		rest(ctx, min(time.Duration(1+len(claims))*breath, maxBreath))
	}
	return nil
}

func (r *running) begin(c *claim) {
	r.claimed = time.Now()
	r.open.Add(1)
	r.claims <- c
}

// alone has a suspect worked on when this Run works on nothing else, so that no
// other event of it is taken for the one that ends the process.
func (r *running) alone(ctx context.Context, suspect *claim) error {
	if err := r.finish(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	c, err := r.inbox.claimSuspect(ctx, suspect)
	if err != nil || c == nil {
		return err
	}
	r.begin(c)
	return r.finish(ctx)
}

// finish waits until all that was taken is settled.
func (r *running) finish(ctx context.Context) error {
	for r.open.Load() > 0 {
		if err := r.wait(ctx, nil); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// Workers that found less than they could take let events gather, so that one
// statement takes several: the longer the more they found, because more come.
// Where a walk over the queues is not quick, because many keys wait, they let
// nine times as long pass.
const (
	breath    = 400 * time.Microsecond
	maxBreath = 4 * time.Millisecond
)

// wait waits until a worker has settled an event, or wake tells of new ones, or
// Poll is over. What waits for a worker all that time goes to others.
func (r *running) wait(ctx context.Context, wake <-chan struct{}) error {
	patience := r.inbox.Poll
	if len(r.claims) > 0 {
		patience = min(patience, lease/4)
	}
	poll := time.NewTimer(patience)
	defer poll.Stop()
	select {
	case <-r.settled:
	case <-wake:
	case <-ctx.Done():
		return nil
	case <-poll.C:
	}
	if time.Since(r.claimed) > lease/4 {
		return r.giveBack(ctx)
	}
	return nil
}

// giveBack leaves what was taken and not begun to other processes.
func (r *running) giveBack(ctx context.Context) error {
	var back []*claim
	for len(r.claims) > 0 {
		select {
		case c := <-r.claims:
			back = append(back, c)
		default: // a worker was quicker
		}
	}
	if len(back) == 0 {
		return nil
	}
	r.open.Add(-int64(len(back)))
	_, err := r.inbox.putBack(ctx, 0, back...)
	return err
}

// stop ends the workers and waits for what they have begun.
func (r *running) stop(cancel context.CancelCauseFunc) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(r.ctx), r.inbox.StopTimeout+handlerGrace+finishGrace)
	defer done()
	grace := time.AfterFunc(r.inbox.StopTimeout, func() { cancel(errStopped) })
	defer grace.Stop()
	err := r.giveBack(ctx)
	close(r.claims)
	for r.open.Load() > 0 {
		select {
		case <-r.settled:
		case <-ctx.Done():
			left := fmt.Errorf("idem: %d handlers did not return when they were stopped: have them heed their context", r.open.Load())
			return errors.Join(left, err)
		}
	}
	r.endClaims(ctx)
	return err
}

// signal tells whoever waits on c, now or next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
