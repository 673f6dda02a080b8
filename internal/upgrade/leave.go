package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// body is the body of every event.
const body = `{"amount":"29.90"}`

type note struct {
	Amount string `json:"amount"`
}

// event is an event of an entity, at a second of a day.
func event(id, does, entity string, second int) idem.Event {
	return idem.Event{
		Source: "shop", ID: id, Type: does, Key: entity, Payload: []byte(body),
		OccurredAt: time.Date(2026, 11, 20, 10, 0, second, 0, time.UTC),
	}
}

// leave leaves an event in each state, and calls then while one is being processed.
func leave(ctx context.Context, pool *pgxpool.Pool, then func() error) error {
	busy, end := make(chan struct{}), make(chan struct{})
	source := testkit.NewSource("shop") // an event's type is what its handler does
	idem.Handle(&source.Routes, "works", func(context.Context, pgx.Tx, *note) error { return nil })
	idem.Handle(&source.Routes, "fails", func(context.Context, pgx.Tx, *note) error { return errors.New("the order is not stored") })
	idem.Handle(&source.Routes, "gives up", func(context.Context, pgx.Tx, *note) error { return idem.NoRetry(errors.New("the order is unknown")) })
	idem.Handle(&source.Routes, "hangs", func(context.Context, pgx.Tx, *note) error { close(busy); <-end; return nil })

	first, archiving, inbox := idem.NewInbox(pool, source), idem.NewInbox(pool, source), idem.NewInbox(pool, source)
	first.WorkFirst, archiving.WorkFirst, archiving.KeepPayloads = true, true, true
	first.Logger, archiving.Logger, inbox.Logger = nil, nil, nil
	inbox.Workers = 1
	inbox.Timeout = time.Minute
	inbox.Backoff = func(int) time.Duration { return time.Minute }
	ana := operator.New(inbox, "ana@shop")

	var failure error
	do := func(err error) { failure = errors.Join(failure, err) }
	send := func(r *idem.Inbox, e idem.Event, want idem.Outcome) {
		if outcome, err := r.Accept(ctx, e); outcome != want {
			do(fmt.Errorf("%s is %s, want %s: %w", e.ID, outcome, want, err))
		}
	}
	act := func(p *operator.Plan, err error) {
		if err == nil {
			r, failed := p.Do(ctx, "by hand")
			if err = failed; err == nil && r.Acted != 1 {
				err = fmt.Errorf("the action changed %d events", r.Acted)
			}
		}
		do(err)
	}
	send(first, event("done", "works", "pay_1", 1), idem.Done)
	send(archiving, event("archived", "works", "pay_2", 1), idem.Done)
	send(first, event("unhandled", "surprises", "pay_4", 1), idem.Unhandled)
	send(inbox, event("discarded", "gives up", "pay_6", 1), idem.Pending)
	send(inbox, event("acknowledged", "gives up", "pay_7", 1), idem.Pending)
	do(inbox.Drain(ctx))
	act(ana.PlanDiscard(ctx, idem.Filter{IDs: []string{"discarded"}}))
	act(ana.PlanAcknowledge(ctx, idem.Filter{IDs: []string{"acknowledged"}}))
	send(inbox, event("later", "fails", "pay_8", 1), idem.Pending)
	send(inbox, event("parked", "gives up", "pay_9", 1), idem.Pending)
	do(inbox.Drain(ctx))
	send(inbox, event("behind parked", "works", "pay_9", 2), idem.Pending)
	_, err := inbox.Prune(ctx)
	do(err)
	if failure != nil {
		return failure
	}

	// The inbox has one worker, and what comes behind the event that hangs stays pending.
	ctx, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	send(inbox, event("claimed", "hangs", "pay_10", 1), idem.Pending)
	go func() { ran <- inbox.Run(ctx) }()
	<-busy
	send(inbox, event("pending", "works", "pay_11", 1), idem.Pending)
	send(inbox, event("behind pending", "works", "pay_11", 2), idem.Pending)
	do(then())
	close(end)
	stop()
	return errors.Join(failure, <-ran)
}
