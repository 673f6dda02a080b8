package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// arrivals are the deliveries that wait to be stored. Those that arrive while
// others are being stored go together in the next statement and share its
// commit; one that is alone does not wait. Where Postgres is far away, there are
// several statements under way.
type arrivals struct {
	mu      sync.Mutex
	waiting []*arrival
	storing int       // statements
	most    int       // of them
	begun   time.Time // when the last of them was
}

// arrival is one delivery; outcome and err are set before done is closed.
type arrival struct {
	event   Event
	done    chan struct{}
	outcome Outcome
	err     error
}

// How much is stored in one statement at most.
const (
	maxArrivals     = 256
	maxArrivalBytes = 4 << 20
)

// apart is how long a statement is waited for: on one machine it takes less.
const apart = 750 * time.Microsecond

// receive stores an event and calls answer.
func (i *Inbox) receive(ctx context.Context, e Event, answer func(Outcome, error)) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.Timeout)
	defer cancel()
	e = i.normalize(e)
	o, err := i.store(ctx, e)
	if err != nil {
		err = fmt.Errorf("idem: %s %s: %w", e.Type, e.ID, err)
	}
	i.report(ctx, Observation{Event: e, Outcome: o, Err: err, Duration: time.Since(start)})
	answer(o, err)
}

func (i *Inbox) store(ctx context.Context, e Event) (Outcome, error) {
	if i.ignores(e) {
		return Ignored, nil
	}
	a := &arrival{event: e, done: make(chan struct{})}
	i.add(a)
	select {
	case <-a.done:
		return a.outcome, a.err
	case <-ctx.Done():
		return Retrying, errors.New("the event could not be stored in time: the pool is too small or Postgres is away")
	}
}

func (i *Inbox) ignores(e Event) bool {
	if s, ok := i.source.(interface{ Ignores(eventType string) bool }); ok {
		return s.Ignores(e.Type)
	}
	_, err := i.source.Route(e)
	return errors.Is(err, ErrIgnored)
}

func (i *Inbox) add(a *arrival) {
	i.arrivals.mu.Lock()
	defer i.arrivals.mu.Unlock()
	i.arrivals.waiting = append(i.arrivals.waiting, a)
	i.storeMore()
}

// storeMore stores what waits, unless that is better done with what is to come.
func (i *Inbox) storeMore() {
	as := &i.arrivals
	if len(as.waiting) > 0 && (as.storing == 0 || as.storing < as.most && time.Since(as.begun) >= apart) {
		as.storing++
		as.begun = time.Now()
		go i.storeArrivals()
	}
}

// next takes what is to be stored together; nothing ends the storing.
func (as *arrivals) next() []*arrival {
	as.mu.Lock()
	defer as.mu.Unlock()
	n, size := 0, 0
	for n < min(len(as.waiting), maxArrivals) {
		size += len(as.waiting[n].event.Payload)
		if n > 0 && size > maxArrivalBytes {
			break
		}
		n++
	}
	batch := as.waiting[:n:n]
	as.waiting = as.waiting[n:]
	if n == 0 {
		as.waiting = nil
		as.storing--
		return nil
	}
	as.begun = time.Now()
	return batch
}

func (i *Inbox) storeArrivals() {
	for batch := i.arrivals.next(); len(batch) > 0; batch = i.arrivals.next() {
		late := time.AfterFunc(apart, func() {
			i.arrivals.mu.Lock()
			defer i.arrivals.mu.Unlock()
			i.storeMore()
		})
		i.storeBatch(batch)
		late.Stop()
		for _, a := range batch {
			close(a.done)
		}
	}
}

// storeBatch stores arrivals in one statement. What Postgres refuses is stored
// one by one, so that no event fails because of another.
func (i *Inbox) storeBatch(batch []*arrival) {
	ctx, cancel := context.WithTimeout(context.Background(), i.Timeout)
	defer cancel()
	err := i.insert(ctx, batch)
	var refused *pgconn.PgError
	if len(batch) > 1 && errors.As(err, &refused) {
		for n := range batch {
			i.storeBatch(batch[n : n+1])
		}
		return
	}
	if err == nil {
		return
	}
	for _, a := range batch {
		a.outcome, a.err = Retrying, fmt.Errorf("storing the event: %w", explain(err))
	}
}
