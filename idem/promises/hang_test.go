package promises_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// What watches events holds up none, and no provider: metrics that block would otherwise stop its queue while all
// that the program says of itself is green.
func TestObserversThatHangHoldUpNoEventAndHealthIsRedUntilTheyReturn(t *testing.T) {
	t.Parallel()
	for name, c := range testkit.Named(map[string]struct {
		set  func(c *idem.Common, hang func())
		says string
	}{
		"Observe": {func(c *idem.Common, hang func()) {
			c.Observe = func(context.Context, idem.Observation) { hang() }
		}, "the Observe function"},
		"Tracer's Start": {func(c *idem.Common, hang func()) { c.Tracer = &hangingTracer{start: hang, end: func() {}} }, "the Tracer"},
		"Tracer's end":   {func(c *idem.Common, hang func()) { c.Tracer = &hangingTracer{start: func() {}, end: hang} }, "the Tracer"},
		"Logger":         {func(c *idem.Common, hang func()) { c.Logger = slog.New(hangingHandler{hang: hang}) }, "the Logger"},
	}, "Observe") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.on(pay)
			s.openInbox()
			release := make(chan struct{})
			hang := func() { <-release }
			h := s.newHealth(s.processor, s.inbox)
			s.wantHealth("nothing hangs", h, "", "")
			c.set(&s.processor.Common, hang)
			c.set(&s.inbox.Common, hang)
			s.inbox.Workers = 1
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.store(letter("e2", "o2", 0), letter("e3", "o3", 0))
			if err := s.inbox.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			s.wantEffects(3)
			s.wantHealth("it hangs", s.newHealth(s.processor, s.inbox), "observers", c.says)
			close(release)
			for returned := false; !returned; pause() {
				returned = s.newHealth(s.processor, s.inbox).Report().Healthy
			}
		})
	}
}

// A worker is not lost to an event whose decoder hangs, nor is the provider's queue.
func TestEventWhoseDecoderHangsFailsAndIsParkedInTheEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"inline", "inbox"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			idem.Handle(&s.notes.Routes, "slow", func(context.Context, pgx.Tx, *endless) error { return nil })
			s.openInbox()
			s.processor.Timeout, s.processor.ParkAfter = time.Millisecond, 2
			s.inbox.Timeout, s.inbox.MaxAttempts, s.inbox.Workers = time.Millisecond, 2, 1
			s.inbox.Backoff = func(int) time.Duration { return 0 }
			const body = `{"id":"e1","type":"slow","order":"o1"}`
			if mode == "inline" {
				for o := idem.Retrying; !o.Acknowledged(); {
					o, _ = s.processor.Accept(t.Context(), identify([]byte(body)))
				}
			} else {
				s.store(identify([]byte(body)))
				s.drain()
			}
			s.wantRow("e1", "state, attempts", "(parked,2)")
			s.wantPayload("e1", body)
			if why := queryOne[string](s, `select last_error from idem_events`); !strings.Contains(why, "decoder did not return") {
				t.Errorf("the stored reason does not tell: %s", why)
			}
		})
	}
}

// endless is an event whose decoder hangs.
type endless struct{}

func (*endless) UnmarshalJSON([]byte) error { select {} }

// hangingTracer calls start and end of each span.
type hangingTracer struct{ start, end func() }

func (h *hangingTracer) Start(ctx context.Context, _ idem.Span) (context.Context, func(idem.Observation)) {
	h.start()
	return ctx, func(idem.Observation) { h.end() }
}

func (*hangingTracer) Carrier(context.Context) string { return "" }

// hangingHandler is a slog.Handler that calls hang for each line, as one does that writes into a full pipe.
type hangingHandler struct {
	slog.Handler
	hang func()
}

func (hangingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h hangingHandler) Handle(context.Context, slog.Record) error { h.hang(); return nil }
