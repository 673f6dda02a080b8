package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// delivery is an event on its way to an answer. It is settled once: by the
// goroutine that works on it or, when its handler hangs, without that.
type delivery struct {
	job
	start  time.Time
	work   Work    // what the event was routed to; nil if it was not yet
	flight *flight // what twins wait for; nil if this is one of them

	settled sync.Once
	answer  func(Outcome, error)
}

var errInterrupted = errors.New("the handler ended its goroutine: return an error instead")

// receive works on an event and calls answer when it is settled, which with a
// handler that hangs is before receive returns.
func (p *Processor) receive(ctx context.Context, e Event, answer func(Outcome, error)) {
	p.deliver(ctx, e, nil, answer)
}

// deliver is receive for an event that was routed to work; nil if it was not yet.
func (p *Processor) deliver(ctx context.Context, e Event, work Work, answer func(Outcome, error)) {
	start := time.Now()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), start.Add(p.Timeout))
	defer cancel()
	d := &delivery{job: job{p: p, ctx: ctx, event: p.normalize(e)}, start: start, work: work, answer: answer}
	d.mark = func(t *transaction) error { return t.markDelivered(d.event, p.KeepPayloads) }
	d.hung = func() { d.settle(d.fail(&workError{errHung})) }
	defer d.settle(Retrying, errInterrupted) // no-op, unless what follows does not come back
	d.settle(d.run())
}

func (d *delivery) settle(o Outcome, err error) {
	d.settled.Do(func() {
		if d.flight != nil {
			d.p.flights.land(d.event, d.flight, o, err)
		}
		if err != nil {
			err = fmt.Errorf("idem: %s %s: %w", d.event.Type, d.event.ID, err)
		}
		d.p.report(d.ctx, Observation{Event: d.event, Outcome: o, Err: err, Duration: time.Since(d.start)})
		d.answer(o, err)
	})
}

func (d *delivery) run() (Outcome, error) {
	work, err := d.work, error(nil)
	if work == nil {
		work, err = d.p.source.Route(d.event)
	}
	switch {
	case errors.Is(err, ErrIgnored):
		return Ignored, nil
	case err != nil:
		return d.keep(StateParked, err)
	case work == nil:
		return d.keep(StateUnhandled, nil)
	}
	f, first := d.p.flights.join(d.event)
	if !first {
		return f.wait(d.ctx)
	}
	d.flight = f
	outcome, err := d.try(work)
	if outcome == Retrying {
		return d.fail(err)
	}
	return outcome, err
}

// keep stores an event that no handler can work on now, with its payload.
func (d *delivery) keep(state State, cause error) (Outcome, error) {
	stored, err := storeKept(d.ctx, d.p.pool, d.event, state, cause)
	switch {
	case err != nil:
		return Retrying, fmt.Errorf("storing the event: %w", explain(err))
	case !stored:
		return Duplicate, nil
	case state == StateParked:
		return Parked, cause
	}
	return Unhandled, nil
}

// fail counts a failed delivery, if the handler ran: when the database is away,
// or goes away, no event is to blame. One that failed too often is parked.
func (d *delivery) fail(cause error) (Outcome, error) {
	var ran *workError
	if !errors.As(cause, &ran) || leaving(cause) {
		return Retrying, cause
	}
	parkAfter, park := d.p.ParkAfter, StateParked
	switch {
	case isFinal(cause):
		parkAfter = 1
	case d.p.HandToInbox:
		park = StatePending
	}
	ctx, cancel := finishing(d.ctx)
	defer cancel()
	state, err := storeFailure(ctx, d.p.pool, d.event, cause, parkAfter, park)
	switch {
	case err != nil:
		return Retrying, errors.Join(cause, fmt.Errorf("the failure could not be counted: %w", err))
	case state == StateParked:
		return Parked, cause
	case state == StatePending:
		return Pending, cause
	case state == StateDone:
		return Duplicate, cause // done by another process, or by this handler with a COMMIT of its own
	}
	return Retrying, cause
}
