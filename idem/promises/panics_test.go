package promises_test

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// A panic in a decoder is a decode error: the event is parked by its first
// delivery, and its provider goes on.
func TestEventWhoseDecoderPanicsIsParked(t *testing.T) {
	t.Parallel()
	const body = `{"id":"e1","type":"fragile","order":"o1"}`
	for name, register := range testkit.Named(map[string]func(*notes){
		"it panics": func(n *notes) {
			idem.Handle(&n.Routes, "fragile", func(context.Context, pgx.Tx, *fragile) error { return nil })
		},
		"its error panics": func(n *notes) {
			idem.Handle(&n.Routes, "fragile", func(context.Context, pgx.Tx, *unreadable) error { return nil })
		},
		"what says which types it takes panics": func(n *notes) {
			idem.HandleOthers(&n.Routes, func(string) bool { panic("no such type") }, pay)
		},
	}, "it panics", "its error panics") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []string{"inline", "inbox"} {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					s := newApp(t)
					register(s.Notes)
					s.openInbox()
					if mode == "inline" {
						s.WantAnswer(body, http.StatusOK)
						s.WantAnswer(body, http.StatusOK)
					} else {
						s.Store(identify([]byte(body)))
						s.Drain(1)
					}
					s.WantState("e1", idem.StateParked)
					s.WantPayload("e1", body)
					if why := queryOne[string](s, `select last_error from idem_events`); !strings.Contains(why, "panic") && !strings.Contains(why, "PANIC") && !strings.Contains(why, "nil") {
						t.Errorf("the stored reason does not tell: %s", why)
					}
					s.WantReplayed(idem.Filter{}, idem.Replayed{Failed: 1})
					if outcome, err := s.First.DryRun(t.Context(), identify([]byte(body))); outcome != idem.Parked || err == nil {
						t.Errorf("DryRun = %s, %v, want parked", outcome, err)
					}
				})
			}
		})
	}
}

// What watches events changes nothing about them.
func TestObserversThatPanicChangeNothing(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*idem.Inbox){
		"Observe": func(c *idem.Inbox) { c.Observe = func(context.Context, idem.Observation) { panic("no metrics") } },
		"Logger":  func(c *idem.Inbox) { c.Logger = slog.New(brittleHandler{}) },
		"Logger's level": func(c *idem.Inbox) {
			c.Logger = slog.New(enabledBrittleHandler{})
		},
		"both": func(c *idem.Inbox) {
			c.Observe = func(context.Context, idem.Observation) { panic("no metrics") }
			c.Logger = slog.New(brittleHandler{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				idem.AfterCommit(ctx, func(context.Context) { panic("no cache") }) // it is logged
				return refuseBad(ctx, tx, n)
			})
			s.openInbox()
			set(s.First)
			set(s.Inbox)
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantAnswer(paid("bad1"), http.StatusOK)
			s.WantAnswer(`{"id":"e1","type":"paid","order":"another body"}`, http.StatusOK) // a conflict is logged
			if status, _, err := s.Post(t.Context(), paid("e2"), map[string]string{"token": "guess"}); status != http.StatusUnauthorized || err != nil {
				t.Errorf("a stranger was answered %d, %v", status, err)
			}
			s.Store(letter("e3", "o3", 0), letter("bad3", "o4", 0))
			if err := s.Inbox.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			s.WantReplayed(idem.Filter{}, idem.Replayed{Failed: 2})
			for id, want := range map[string]idem.State{"e1": idem.StateDone, "bad1": idem.StateParked, "e3": idem.StateDone, "bad3": idem.StateParked} {
				s.WantState(id, want)
			}
			s.WantEffects(2)
		})
	}
}

func TestObserveThatPanicsIsLogged(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.First.Observe = func(context.Context, idem.Observation) { panic("no metrics") }
	s.WantAnswer(paid("e1"), http.StatusOK)
	if log := s.Logged(); !strings.Contains(log, "webhook Observe function failed") || !strings.Contains(log, "no metrics") {
		t.Error("the log does not tell:\n" + log)
	}
}

func TestAfterCommitThatPanicsUnderAWorkerIsLogged(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		idem.AfterCommit(ctx, func(context.Context) { panic("no cache") })
		return pay(ctx, tx, n)
	})
	s.Store(letter("e1", "o1", 0))
	s.Drain(1)
	s.WantState("e1", idem.StateDone)
	if !strings.Contains(s.Logged(), "AfterCommit function failed") {
		t.Error("the log does not tell:\n" + s.Logged())
	}
}

func TestBackoffThatPanicsWaitsAsByDefault(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.Inbox.Backoff = func(int) time.Duration { panic("no schedule") }
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	s.Store(letter("e1", "o1", 0))
	s.Exec(`update idem_events set attempts = 12`) // the next waits for an hour or so, by default
	s.Drain(1)
	s.WantRow("e1", "state, attempts", "(pending,13)")
	if !queryOne[bool](s, `select due_at > now() + interval '30 minutes' from idem_payloads`) {
		t.Error("the next attempt does not wait")
	}
}

// The type is then one that is not ignored.
func TestSourceThatPanicsAboutATypeLosesNoEvent(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.On(pay)
	p, i := newFirst(s.Pool, doubtfulSource{s.Notes}), idem.NewInbox(s.Pool, doubtfulSource{s.Notes})
	p.Logger, i.Logger = nil, nil
	if o, err := p.Accept(t.Context(), letter("e1", "o1", 0)); o != idem.Done || err != nil {
		t.Errorf("inline: %s, %v, want done", o, err)
	}
	if o, err := i.Accept(t.Context(), letter("e2", "o2", 0)); o != idem.Pending || err != nil {
		t.Errorf("inbox: %s, %v, want pending", o, err)
	}
	if err := i.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	s.WantEffects(2)
}

// Whether the delivery is genuine could not be determined: it must come again.
func TestDeliveryThatCannotBeOpenedMustComeAgain(t *testing.T) {
	t.Parallel()
	accounts := asaas.NewDispatcher()
	accounts.Accounts = func(*http.Request) ([]idem.Credentials, error) { panic("no vault") }
	for name, source := range map[string]idem.Source{
		"Open panics": &brittleSource{}, "Accounts panics": accounts, "the error of Open panics": &nilSource{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			p, i := newFirst(s.Pool, source), idem.NewInbox(s.Pool, source)
			p.Logger, i.Logger, p.Observe, i.Observe = s.Logger(), s.Logger(), s.Observe, s.Observe
			for mode, h := range map[string]http.Handler{"inline": p, "inbox": i} {
				s.endpoint(h, "")
				if status, answer := s.Deliver(paid("e1")); status != http.StatusServiceUnavailable {
					t.Errorf("%s: answered %d %s, want 503", mode, status, answer)
				}
			}
			for _, o := range s.Outcomes() {
				if o != idem.Retrying {
					t.Errorf("the outcome is %s, want retrying", o)
				}
			}
			if !strings.Contains(s.Logged(), "panic") {
				t.Error("the log does not tell:\n" + s.Logged())
			}
			s.WantContents([]string{})
		})
	}
}

// A tracer is the application's: a panic in it is an error, which is tried again, and not
// the end of the process.
func TestTracerThatPanicsLosesNoEvent(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox = s.NewInbox(openPool(t, s.Pool.Config().ConnString(), func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = &panicking{}
	}))
	s.On(pay)
	events := []idem.Event{letter("e1", "o1", 1), letter("e2", "o1", 2), letter("e3", "o2", 3)}
	s.Start(s.Inbox)
	for _, e := range events {
		for o := idem.Retrying; !o.Acknowledged(); {
			o, _ = s.Inbox.Accept(t.Context(), e)
		}
	}
	s.untilDone(len(events))
	s.WantEffects(len(events))
}

// brittleHandler is a slog.Handler that panics.
type brittleHandler struct{ slog.Handler }

func (brittleHandler) Enabled(context.Context, slog.Level) bool { return true }

func (brittleHandler) Handle(context.Context, slog.Record) error { panic("no such disk") }

// enabledBrittleHandler panics before there is anything to log.
type enabledBrittleHandler struct{ slog.Handler }

func (enabledBrittleHandler) Enabled(context.Context, slog.Level) bool { panic("no such level") }

// fragile is an event whose decoder panics.
type fragile struct{}

func (*fragile) UnmarshalJSON([]byte) error { panic("no such field") }

// unreadable is an event whose decoder returns an error that panics itself.
type unreadable struct{}

func (*unreadable) UnmarshalJSON([]byte) error { return (*brittleError)(nil) }

// brittleError panics when it is nil, as errors do whose authors forgot that a
// nil pointer in an error is not nil.
type brittleError struct{ cause error }

func (b *brittleError) Error() string { return "brittle: " + b.cause.Error() }

func (b *brittleError) Unwrap() error { return b.cause }

// pickyError panics when it is compared with an error of another type, as errors do
// whose authors thought of their own only.
type pickyError struct{ code int }

func (*pickyError) Error() string { return "picky" }

func (p *pickyError) Is(target error) bool { return target.(*pickyError).code == p.code }

// doubtfulSource panics when it is asked about a type.
type doubtfulSource struct{ *notes }

func (doubtfulSource) Ignores(string) bool { panic("no such type") }

func (doubtfulSource) Handles(string) bool { panic("no such type") }

// brittleSource is a source that cannot open anything.
type brittleSource struct{ notes }

func (*brittleSource) Open(*http.Request) (idem.Event, error) { panic("no secrets") }

// nilSource returns an error that panics.
type nilSource struct{ notes }

func (*nilSource) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, (*brittleError)(nil)
}

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

func (p *panicking) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// picky is an argument whose encoding fails with such an error.
type picky struct{}

func (picky) Value() (driver.Value, error) { return nil, &pickyError{1} }

var _ json.Unmarshaler = (*fragile)(nil)
