package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// rehearsal is a rehearsal, and its counts.
type rehearsal struct {
	config
	pair   *pair
	result result
}

// measure compares the rates of one process of each kind with those of all, in
// turns. The first round only warms up.
func (r *rehearsal) measure(ctx context.Context) error {
	if r.rate == 0 || r.rounds == 0 {
		return nil
	}
	for round := range r.rounds + 1 {
		one, err := r.round(ctx, fmt.Sprintf("one%d_", round), 1, 1)
		if err != nil {
			return err
		}
		all, err := r.round(ctx, fmt.Sprintf("all%d_", round), r.receivers, r.workers)
		if err != nil {
			return err
		}
		if round > 0 {
			r.result.one.add(one)
			r.result.all.add(all)
		}
	}
	return nil
}

// round sends the events of r.rate payments to so many processes.
func (r *rehearsal) round(ctx context.Context, run string, receivers, workers int) (took speed, err error) {
	f, err := startFleet(r.pair.url, receivers, workers, r.verbose)
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	p := newProvider(f.balancer.url, run, r.at)
	start := time.Now()
	p.send(ctx, r.rate, r.at)
	took.answering = time.Since(start)
	err = r.drained(ctx)
	took.working = time.Since(start)
	took.events = len(p.list())
	return took, err
}

// failOver kills processes, then the primary, and processes once more, while the
// provider sends; and compares at the end.
func (r *rehearsal) failOver(ctx context.Context) (err error) {
	f, err := startFleet(r.pair.url, r.receivers, r.workers, r.verbose)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newProvider(f.balancer.url, "fail_", r.at)
	events := r.payments * len(steps)
	quarter, half, rest := p.reached(events/4), p.reached(events/2), p.reached(events*3/4)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		p.send(ctx, r.payments, r.at)
	}()
	for _, act := range []struct {
		at <-chan struct{}
		do func() error
	}{
		{quarter, f.replace},
		{half, func() error { return r.promote(ctx, p) }},
		{rest, f.replace},
	} {
		select {
		case <-act.at:
		case <-ctx.Done():
			<-sent
			return context.Cause(ctx)
		}
		if err := act.do(); err != nil {
			return err
		}
	}
	<-sent
	if err := r.drained(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx, p, f); err != nil {
		return err
	}
	r.result.firstAnswer, r.result.refused = p.first, p.refused
	return nil
}

func (r *rehearsal) promote(ctx context.Context, p *provider) error {
	killed, err := r.pair.promote(ctx)
	p.watch(killed)
	return err
}

// drained waits until no event is pending.
func (r *rehearsal) drained(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, r.pair.url)
	if err != nil {
		return err
	}
	defer pool.Close()
	for left := 1; left > 0; {
		if err := pool.QueryRow(ctx, `select count(*) from idem_payloads where source <> ''`).Scan(&left); err != nil {
			return fmt.Errorf("waiting for %d events to be done: %w", left, err)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d events to be done: %w", left, context.Cause(ctx))
		}
	}
	return nil
}
