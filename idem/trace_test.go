package idem_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

type traceKey struct{}

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

// traced is a handler that must have the context of its span.
func traced(ctx context.Context, tx pgx.Tx, n *note) error {
	if _, ok := ctx.Value(traceKey{}).(int); !ok {
		return fmt.Errorf("the handler's context is not its span's")
	}
	return refuseBad(ctx, tx, n)
}

func TestEachDeliveryIsOneSpanWithTheHandlersContext(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(traced)
	s.notes.Ignore("noise")
	r := &tracer{}
	s.processor.Tracer = r
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantAnswer(paid("bad1"), http.StatusOK)
	s.wantAnswer(`{"id":"n1","type":"noise"}`, http.StatusOK)
	s.wantAnswer(`{"id":"x1","type":"invented by a stranger"}`, http.StatusOK)
	if status, _, err := s.post(t.Context(), paid("e2"), map[string]string{"token": "wrong"}); status != http.StatusUnauthorized || err != nil {
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
	s.on(traced)
	r := &tracer{}
	s.inbox.Tracer, s.processor.Tracer = r, r
	s.store(letter("a", "o1", 1), letter("bad1", "o2", 1))
	s.inbox.MaxAttempts, s.inbox.Workers = 1, 1
	s.drain(2)
	s.wantReplayed(idem.Filter{}, idem.Replayed{Failed: 1})
	if o, err := s.inbox.Accept(t.Context(), letter("bad1", "o2", 1)); o != idem.Pending || err != nil {
		t.Error(o, err)
	}
	s.drain(1)
	r.want(t, "delivery paid a: pending", "delivery paid bad1: pending",
		"attempt paid a after span 0: done", "attempt paid bad1 after span 1: parked",
		"attempt paid bad1 after span 1: parked", "delivery paid bad1: pending", "attempt paid bad1 after span 5: parked")
	if n := queryOne[int](s, `select count(*) from idem_payloads where event like '%//a'`); n != 0 {
		t.Error("the carrier outlives the payload")
	}
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

func TestPanickingTracerCostsNoEvent(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]brokenTracer{
		"at the start": {start: true}, "at the end": {end: true}, "in its carrier": {carrier: true}, "with a carrier that is no text": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.on(pay)
			s.inbox.Tracer, s.processor.Tracer = broken, broken
			s.store(letter("a", "o1", 1))
			s.drain(1)
			if o, err := s.processor.Accept(t.Context(), letter("b", "o1", 2)); o != idem.Done || err != nil {
				t.Error(o, err)
			}
			s.wantEffects(2)
		})
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

func TestTracerThatReturnsNothingCostsNoEvent(t *testing.T) {
	t.Parallel()
	for name, lazy := range map[string]lazyTracer{
		"no context": {noContext: true}, "no end": {noEnd: true}, "neither": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.on(pay)
			s.inbox.Tracer, s.processor.Tracer = lazy, lazy
			s.store(letter("a", "o1", 1))
			s.drain(1)
			if o, err := s.processor.Accept(t.Context(), letter("b", "o1", 2)); o != idem.Done || err != nil {
				t.Error(o, err)
			}
			s.wantEffects(2)
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
		lag, ok := c.o.Lag()
		if ok != c.ok || lag < c.want || lag > c.want+time.Minute {
			t.Errorf("%s: Lag = %s, %t, want %s, %t", name, lag, ok, c.want, c.ok)
		}
	}
}
