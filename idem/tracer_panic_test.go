package idem_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// panicking is a tracer that panics at each kind of statement once.
type panicking struct{ seen sync.Map }

func (p *panicking) trace(ctx context.Context, kind string) context.Context {
	if _, again := p.seen.LoadOrStore(kind, true); !again {
		panic("the tracer panics at " + kind)
	}
	return ctx
}

func (p *panicking) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	word, _, _ := strings.Cut(strings.TrimSpace(q.SQL), " ")
	return p.trace(ctx, "query "+word)
}

func (p *panicking) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (p *panicking) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	return p.trace(ctx, "batch "+strings.TrimSpace(b.Batch.QueuedQueries[0].SQL))
}

func (p *panicking) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (p *panicking) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// A tracer is the application's: a panic in it is an error, which is tried again, and not
// the end of the process.
func TestTracerThatPanicsLosesNoEvent(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.inbox = s.newInbox(openPool(t, s.pool.Config().ConnString(), func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = &panicking{}
	}))
	s.on(pay)
	events := []idem.Event{letter("e1", "o1", 1), letter("e2", "o1", 2), letter("e3", "o2", 3)}
	s.start(s.inbox)
	for _, e := range events {
		for o := idem.Retrying; !o.Acknowledged(); {
			o, _ = s.inbox.Accept(t.Context(), e)
		}
	}
	s.untilDone(len(events))
	s.wantEffects(len(events))
}
