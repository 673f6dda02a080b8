package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// trial is the events that are delivered to one scheme with a fault, and what became of them.
type trial struct {
	scheme                       scheme
	pool                         *pgxpool.Pool
	events, lost, doubled, never int
}

func (t *trial) String() string {
	var parts []string
	for _, p := range []struct {
		what string
		n    int
	}{{"loses", t.lost}, {"doubles", t.doubled}, {"never done", t.never}} {
		switch {
		case p.n > 0 && t.events == 1:
			parts = append(parts, p.what)
		case p.n > 0:
			parts = append(parts, fmt.Sprintf("%s %d of %d", p.what, p.n, t.events))
		}
	}
	if parts == nil {
		return "ok"
	}
	return "**" + strings.Join(parts, ", ") + "**"
}

// fault happens while an event is received and processed.
type fault struct {
	killAt int    // the step after which the process is killed, once; 0 for none
	fails  bool   // the handler fails, once, between its two parts
	leaves bool   // the sender leaves, each time
	meet   func() // waits for the other process

	steps int  // that were reached until the kill
	over  bool // the kill or the failure has happened
}

// kill ends a process by a panic.
type kill struct{}

// step is a point at which a process may be killed.
func (f *fault) step() {
	if f.over || f.killAt == 0 {
		return
	}
	if f.steps++; f.steps == f.killAt {
		f.over = true
		panic(kill{})
	}
}

// survive is deferred: a process that is killed is started again.
func survive() {
	if p := recover(); p != nil && p != any(kill{}) {
		panic(p)
	}
}

// atOnce delivers an event twice at the same time, to two processes, and has the workers of both work at the
// same time. A provider's pause is longer than an attempt: neither is delivered again before both are answered.
func atOnce(ctx context.Context, t *trial) error {
	id := "evt_" + rand.Text()
	var both, all sync.WaitGroup
	var twice [2]struct {
		fault        fault
		arrive       func()
		acknowledged bool
	}
	both.Add(len(twice))
	for n := range twice {
		p := &twice[n]
		p.arrive = sync.OnceFunc(both.Done)
		p.fault = fault{meet: func() { p.arrive(); both.Wait() }}
		all.Go(func() { p.acknowledged = t.receive(ctx, id, &p.fault) })
	}
	all.Wait()
	for n := range twice {
		p := &twice[n]
		all.Go(func() {
			defer p.arrive()
			p.acknowledged = p.acknowledged || t.insist(ctx, id, &p.fault)
			t.work(ctx, id, &p.fault)
		})
	}
	all.Wait()
	return t.judge(ctx, id, twice[0].acknowledged && twice[1].acknowledged)
}

// killed delivers an event for each step of the scheme, after which the process is killed.
func killed(ctx context.Context, t *trial) error {
	for at := 1; ; at++ {
		f, before := &fault{killAt: at, meet: alone}, *t
		if err := t.one(ctx, f); err != nil {
			return err
		}
		if !f.over { // there is no such step
			*t = before
			return nil
		}
	}
}

// failing delivers an event to a handler that fails the first time, after it has booked.
func failing(ctx context.Context, t *trial) error {
	return t.one(ctx, &fault{fails: true, meet: alone})
}

// leaving delivers an event from a sender that does not wait for the handler's end.
func leaving(ctx context.Context, t *trial) error {
	return t.one(ctx, &fault{leaves: true, meet: alone})
}

func alone() {} // there is no other process

// one delivers one event with a fault.
func (t *trial) one(ctx context.Context, f *fault) error {
	id := "evt_" + rand.Text()
	acknowledged := t.insist(ctx, id, f)
	t.work(ctx, id, f)
	return t.judge(ctx, id, acknowledged)
}

// insist delivers an event until it is answered 200, ten times at most.
func (t *trial) insist(ctx context.Context, id string, f *fault) (acknowledged bool) {
	for range 10 {
		if acknowledged = t.receive(ctx, id, f); acknowledged {
			break
		}
	}
	return acknowledged
}

// receive delivers an event once.
func (t *trial) receive(ctx context.Context, id string, f *fault) (acknowledged bool) {
	defer survive()
	request, leave := context.WithCancel(ctx)
	defer leave()
	return t.scheme.receive(&delivery{f, t.pool, id, ctx, request, leave}) == http.StatusOK
}

// work has the scheme's worker work until it has no error.
func (t *trial) work(ctx context.Context, id string, f *fault) {
	once := func() (done bool) {
		defer survive()
		return t.scheme.work(&delivery{f, t.pool, id, ctx, ctx, func() {}}) == nil
	}
	for i := 0; i < 10 && t.scheme.work != nil && !once(); i++ {
	}
}

// judge counts the effects of an event: both parts, once each, or it went wrong.
func (t *trial) judge(ctx context.Context, id string, acknowledged bool) error {
	var first, second int
	const count = `select count(*) filter (where part = 1), count(*) filter (where part = 2) from ledger where event = $1`
	if err := t.pool.QueryRow(ctx, count, id).Scan(&first, &second); err != nil {
		return err
	}
	t.events++
	switch {
	case max(first, second) > 1:
		t.doubled++
	case !acknowledged:
		t.never++
	case min(first, second) == 0:
		t.lost++
	}
	return nil
}
