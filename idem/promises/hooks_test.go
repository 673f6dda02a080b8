package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

func TestAfterCommitRunsOnceTheWorkIsVisible(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1)) // the hook gets the connection, so it must be free
	seen := 0
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		idem.AfterCommit(ctx, func(ctx context.Context) {
			if err := s.Pool.QueryRow(ctx, `select count(*) from effects`).Scan(&seen); err != nil {
				t.Error(err)
			}
		})
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusOK)
	if seen != 1 {
		t.Errorf("the hook saw %d effects, want 1", seen)
	}
}

func TestAfterCommitRunsInOrderAndNotForWhatWasRolledBack(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	var ran []string
	runs := 0
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		runs++
		for _, name := range []string{"first", "second"} {
			if runs == 1 {
				name += " of the run that failed"
			}
			idem.AfterCommit(ctx, func(context.Context) { ran = append(ran, name) })
		}
		if runs == 1 {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantAnswer(paid("e1"), http.StatusOK)
	if diff := cmp.Diff([]string{"first", "second"}, ran); diff != "" {
		t.Error("hooks that ran (-want +got):\n" + diff)
	}
}

func TestHookThatFailsDoesNotFailTheEvent(t *testing.T) {
	t.Parallel()
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	for name, hook := range map[string]func(context.Context){
		"panics":        func(context.Context) { panic("no cache") },
		"never returns": func(context.Context) { <-forever },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.First.AnswerWithin = 500 * time.Millisecond
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				idem.AfterCommit(ctx, hook)
				return pay(ctx, tx, n)
			})
			status, _ := s.Deliver(paid("e1"))
			for status == http.StatusServiceUnavailable { // the time is short on a busy machine
				status, _ = s.Deliver(paid("e1"))
			}
			if status != http.StatusOK {
				t.Errorf("answered %d, want 200", status)
			}
			s.WantEffects(1)
			if !strings.Contains(s.Logged(), "AfterCommit function failed") {
				t.Error("the log does not tell:\n" + s.Logged())
			}
		})
	}
}

func TestAfterCommitOutsideOfAHandlerPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("AfterCommit accepted a hook that would never run")
		}
	}()
	idem.AfterCommit(t.Context(), func(context.Context) {})
}

func TestAfterCommitUnderDispatchPanics(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	idem.Handle(&r, "paid", func(ctx context.Context, _ pgx.Tx, _ *note) error {
		idem.AfterCommit(ctx, func(context.Context) {})
		return nil
	})
	defer func() {
		if recover() == nil {
			t.Error("AfterCommit accepted a hook although nobody knows when the caller commits")
		}
	}()
	_ = idem.Dispatch(t.Context(), nil, &r, idem.Event{Type: "paid", Payload: []byte(`{}`)})
}

func TestHandlerKnowsItsEvent(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		e, ok := idem.EventFrom(ctx)
		want := idem.Event{Source: "notes", Scope: "a", ID: "e1", Type: "paid", Key: "o1", Payload: []byte(paid("e1"))}
		if diff := cmp.Diff(want, e); !ok || diff != "" {
			t.Error("EventFrom (-want +got):\n" + diff)
		}
		return nil
	})
	if status, _, err := s.Post(t.Context(), paid("e1"), map[string]string{"account": "a"}); status != 200 || err != nil {
		t.Error(status, err)
	}
	if _, ok := idem.EventFrom(t.Context()); ok {
		t.Error("there is an event outside of a handler")
	}
}

func TestEachDeliveryIsOneSpanWithTheHandlersContext(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(traced)
	s.Notes.Ignore("noise")
	r := &tracer{}
	s.First.Tracer = r
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantAnswer(paid("bad1"), http.StatusOK)
	s.WantAnswer(`{"id":"n1","type":"noise"}`, http.StatusOK)
	s.WantAnswer(`{"id":"x1","type":"invented by a stranger"}`, http.StatusOK)
	if status, _, err := s.Post(t.Context(), paid("e2"), map[string]string{"token": "wrong"}); status != http.StatusUnauthorized || err != nil {
		t.Error(status, err)
	}
	r.want(t, "delivery paid e1: done", "delivery paid e1: duplicate", "delivery paid bad1: parked",
		"delivery noise n1: ignored", "delivery _other x1: unhandled", "delivery  : refused")
}

// The attempt may come days later, in another process: its span gets what names
// the delivery's.
func TestAttemptOfAnInboxKnowsTheDeliveryThatStoredIt(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(traced)
	r := &tracer{}
	s.Inbox.Tracer, s.First.Tracer = r, r
	s.Store(letter("a", "o1", 1), letter("bad1", "o2", 1))
	s.Inbox.MaxAttempts, s.Inbox.Workers = 1, 1
	s.Drain(2)
	s.WantReplayed(idem.Filter{}, idem.Replayed{Failed: 1})
	if o, err := s.Inbox.Accept(t.Context(), letter("bad1", "o2", 1)); o != idem.Pending || err != nil {
		t.Error(o, err)
	}
	s.Drain(1)
	r.want(t, "delivery paid a: pending", "delivery paid bad1: pending",
		"attempt paid a after span 0: done", "attempt paid bad1 after span 1: parked",
		"attempt paid bad1 after span 1: parked", "delivery paid bad1: pending", "attempt paid bad1 after span 5: parked")
	if n := queryOne[int](s, `select count(*) from idem_payloads where event like '%//a'`); n != 0 {
		t.Error("the carrier outlives the payload")
	}
}

func TestPanickingTracerCostsNoEvent(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]brokenTracer{
		"at the start": {start: true}, "at the end": {end: true}, "in its carrier": {carrier: true}, "with a carrier that is no text": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.On(pay)
			s.Inbox.Tracer, s.First.Tracer = broken, broken
			s.Store(letter("a", "o1", 1))
			s.Drain(1)
			if o, err := s.First.Accept(t.Context(), letter("b", "o1", 2)); o != idem.Done || err != nil {
				t.Error(o, err)
			}
			s.WantEffects(2)
		})
	}
}

func TestTracerThatReturnsNothingCostsNoEvent(t *testing.T) {
	t.Parallel()
	for name, lazy := range map[string]lazyTracer{
		"no context": {noContext: true}, "no end": {noEnd: true}, "neither": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.On(pay)
			s.Inbox.Tracer, s.First.Tracer = lazy, lazy
			s.Store(letter("a", "o1", 1))
			s.Drain(1)
			if o, err := s.First.Accept(t.Context(), letter("b", "o1", 2)); o != idem.Done || err != nil {
				t.Error(o, err)
			}
			s.WantEffects(2)
		})
	}
}

func TestLagIsFromTheProvidersTimeToDone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		o    idem.Observation
		want time.Duration
		ok   bool
	}{
		"done":                           {idem.Observation{Outcome: idem.Done, Event: idem.Event{OccurredAt: now.Add(-time.Hour)}}, time.Hour, true},
		"the provider's clock is ahead":  {idem.Observation{Outcome: idem.Done, Event: idem.Event{OccurredAt: now.Add(time.Hour)}}, 0, true},
		"not done yet":                   {idem.Observation{Outcome: idem.Pending, Event: idem.Event{OccurredAt: now}}, 0, false},
		"done before":                    {idem.Observation{Outcome: idem.Duplicate, Event: idem.Event{OccurredAt: now}}, 0, false},
		"the provider does not say when": {idem.Observation{Outcome: idem.Done}, 0, false},
	} {
		lag, ok := gauge.Lag(c.o)
		if ok != c.ok || lag < c.want || lag > c.want+time.Minute {
			t.Errorf("%s: Lag = %s, %t, want %s, %t", name, lag, ok, c.want, c.ok)
		}
	}
}

// tracer notes each span, numbered in their order, and how it ended.
type tracer struct {
	mu    sync.Mutex
	spans []string
}

func (r *tracer) Start(ctx context.Context, s idem.Span) (context.Context, func(idem.Observation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.spans)
	text := fmt.Sprintf("%s %s %s", s.Stage, s.Label, s.Event.ID)
	if s.Carrier != "" {
		text += " after " + s.Carrier
	}
	r.spans = append(r.spans, text)
	return context.WithValue(ctx, traceKey{}, n), func(o idem.Observation) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.spans[n] += ": " + string(o.Outcome)
	}
}

func (*tracer) Carrier(ctx context.Context) string {
	return fmt.Sprintf("span %d", ctx.Value(traceKey{}))
}

func (r *tracer) want(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.spans); diff != "" {
		t.Error("spans (-want +got):\n" + diff)
	}
}

// lazyTracer returns nothing for what it does not want to follow.
type lazyTracer struct{ noContext, noEnd bool }

func (l lazyTracer) Start(ctx context.Context, _ idem.Span) (context.Context, func(idem.Observation)) {
	end := func(idem.Observation) {}
	if l.noContext {
		ctx = nil
	}
	if l.noEnd {
		end = nil
	}
	return ctx, end
}

func (lazyTracer) Carrier(context.Context) string { return "" }

type traceKey struct{}

// traced is a handler that must have the context of its span.
func traced(ctx context.Context, tx pgx.Tx, n *note) error {
	if _, ok := ctx.Value(traceKey{}).(int); !ok {
		return fmt.Errorf("the handler's context is not its span's")
	}
	return refuseBad(ctx, tx, n)
}

// brokenTracer panics wherever it can.
type brokenTracer struct{ start, end, carrier bool }

func (b brokenTracer) Start(ctx context.Context, _ idem.Span) (context.Context, func(idem.Observation)) {
	if b.start {
		panic("start")
	}
	return ctx, func(idem.Observation) {
		if b.end {
			panic("end")
		}
	}
}

func (b brokenTracer) Carrier(context.Context) string {
	if b.carrier {
		panic("carrier")
	}
	return "\xff not text, and \x00"
}
