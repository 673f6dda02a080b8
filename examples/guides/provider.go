package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// trial is events that are delivered to one scheme, with a fault.
type trial struct {
	scheme scheme
	pool   *pgxpool.Pool
	events int
}

// verdict counts the outcomes of the events of a trial.
type verdict struct{ events, lost, doubled, never int }

func (v verdict) String() string {
	var parts []string
	for _, p := range []struct {
		what string
		n    int
	}{{"loses", v.lost}, {"doubles", v.doubled}, {"never done", v.never}} {
		switch {
		case p.n > 0 && v.events == 1:
			parts = append(parts, p.what)
		case p.n > 0:
			parts = append(parts, fmt.Sprintf("%s %d of %d", p.what, p.n, v.events))
		}
	}
	if parts == nil {
		return "ok"
	}
	return "**" + strings.Join(parts, ", ") + "**"
}

// Errors of faults.
var (
	errKilled = errors.New("the process is killed")
	errFailed = errors.New("the handler fails")
)

// fault happens while an event is received and worked on.
type fault struct {
	killAt int // the step after which the process is killed, once; 0 for none
	fails  bool
	leaves bool // each time
	meet   func()

	answered func() // is called after each answer; nil for none
	pause    func() // is called before the event is delivered again; nil for none

	steps int  // that were reached until the kill
	over  bool // the kill or the failure has happened
}

// step is a point at which a process may be killed.
func (f *fault) step() error {
	if f.over || f.killAt == 0 {
		return nil
	}
	if f.steps++; f.steps == f.killAt {
		f.over = true
		return errKilled
	}
	return nil
}

// deliver delivers an event until it is answered 200, ten times at most, and has the
// worker work. A process that is killed is started again.
func (t *trial) deliver(ctx context.Context, id string, f *fault) (acknowledged bool, err error) {
	for attempt := range 10 {
		if attempt > 0 && f.pause != nil {
			f.pause()
		}
		request, leave := context.WithCancel(ctx)
		r := &delivery{ctx: ctx, request: request, leave: leave, id: id, fault: f, pool: t.pool}
		status := t.scheme.receive(r)
		leave()
		if f.answered != nil {
			f.answered()
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		acknowledged = status == 200
		if acknowledged {
			break
		}
	}
	for range 10 {
		if t.scheme.work == nil || t.scheme.work(&delivery{ctx: ctx, request: ctx, leave: func() {}, id: id, fault: f, pool: t.pool}) == nil {
			break
		}
	}
	return acknowledged, ctx.Err()
}

// judge counts the effects of an event: both parts, once each, or it went wrong.
func (t *trial) judge(ctx context.Context, v *verdict, id string, acknowledged bool) error {
	var first, second int
	const count = `select count(*) filter (where part = 1), count(*) filter (where part = 2) from ledger where event = $1`
	if err := t.pool.QueryRow(ctx, count, id).Scan(&first, &second); err != nil {
		return err
	}
	v.events++
	switch {
	case max(first, second) > 1:
		v.doubled++
	case !acknowledged:
		v.never++
	case min(first, second) == 0:
		v.lost++
	}
	return nil
}

// one delivers one event with a fault.
func (t *trial) one(ctx context.Context, v *verdict, f *fault) error {
	id := t.newID()
	acknowledged, err := t.deliver(ctx, id, f)
	if err != nil {
		return err
	}
	return t.judge(ctx, v, id, acknowledged)
}

func (t *trial) newID() string {
	t.events++
	return fmt.Sprintf("evt_%s_%p_%d", strings.Fields(t.scheme.name)[0], t, t.events)
}

// atOnce delivers an event twice at the same time, to two processes, each with its worker.
// A provider's pause is longer than an attempt: neither is delivered again before both are
// answered.
func atOnce(ctx context.Context, t *trial) (v verdict, err error) {
	id, both := t.newID(), newMeeting(2)
	var all sync.WaitGroup
	acknowledged, errs := make([]bool, 2), make([]error, 2)
	answered := []chan struct{}{make(chan struct{}), make(chan struct{})}
	for n := range 2 {
		f := &fault{
			meet:     both.meet,
			answered: sync.OnceFunc(func() { close(answered[n]) }),
			pause:    func() { <-answered[1-n] },
		}
		all.Go(func() {
			defer both.leave()
			acknowledged[n], errs[n] = t.deliver(ctx, id, f)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return v, err
	}
	return v, t.judge(ctx, &v, id, acknowledged[0] && acknowledged[1])
}

// killed delivers an event for each step of the scheme, after which the process is killed.
func killed(ctx context.Context, t *trial) (v verdict, err error) {
	for at := 1; ; at++ {
		f, before := &fault{killAt: at}, v
		if err := t.one(ctx, &v, f); err != nil {
			return v, err
		}
		if !f.over { // there is no such step
			return before, nil
		}
	}
}

// failing delivers an event to a handler that fails the first time, after it has booked.
func failing(ctx context.Context, t *trial) (v verdict, err error) {
	return v, t.one(ctx, &v, &fault{fails: true})
}

// leaving delivers an event from a sender that does not wait for the handler's end.
func leaving(ctx context.Context, t *trial) (v verdict, err error) {
	return v, t.one(ctx, &v, &fault{leaves: true})
}

// meeting has goroutines wait for each other, where all of them come.
type meeting struct {
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{missing: n, all: make(chan struct{})} }

// meet waits until all have come or left.
func (m *meeting) meet() {
	m.leave()
	<-m.all
}

// leave does not wait.
func (m *meeting) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missing--; m.missing == 0 {
		close(m.all)
	}
}
