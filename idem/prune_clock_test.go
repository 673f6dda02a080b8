package idem_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/idem/outbox"
)

// setClock has the database's clock be ahead of the machine's, in an app of appWithClock.
func (s *app) setClock(ahead string) {
	s.Helper()
	s.exec(`create or replace function now() returns timestamptz stable language sql as $$ select pg_catalog.now() + interval '` + ahead + `' $$`)
}

// pruneOn runs Prune on a day of the database's clock.
func (s *app) pruneOn(p pruner, day string) int64 {
	s.Helper()
	s.setClock(day)
	n, err := p.Prune(s.Context())
	if err != nil {
		s.Errorf("on day %s: Prune = %d, %v", day, n, err)
	}
	return n
}

// A provider's redelivery of what came then is a duplicate for as long as of any other event.
func TestEventThatCameWhileTheClockWasBehindIsForgottenNoEarlier(t *testing.T) {
	t.Parallel()
	for _, behind := range []int{60, 46, 20, 3} {
		t.Run(fmt.Sprint(behind, " days"), func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, "0 days")
			s.on(pay)
			s.processor.KeepPayloads, s.processor.PayloadRetention = true, 35*24*time.Hour
			s.wantAnswer(paid("e0"), http.StatusOK)
			s.pruneOn(s.processor, "0 days")
			s.pruneOn(s.processor, "70 days")
			s.wantAnswer(paid("before"), http.StatusOK)

			s.setClock(fmt.Sprintf("%d days", 71-behind))
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantAnswer(newBodyOf("e2"), http.StatusOK)
			if n, err := s.processor.Prune(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), "set the clock") {
				t.Errorf("while the clock is behind: Prune = %d, %v, want an error", n, err)
			}
			for _, day := range []string{"71 days 1 minute", "72 days", "73 days", "74 days", "80 days", "90 days", "104 days"} {
				s.pruneOn(s.processor, day)
				if status, answer := s.deliver(paid("e1")); status != http.StatusOK || !strings.Contains(answer, "duplicate") {
					t.Errorf("on day %s the event that is delivered again is answered %d %s", day, status, answer)
				}
				s.wantState("e2", idem.StateUnhandled)
				s.wantPayload("e2", newBodyOf("e2"))
				s.wantPayload("e1", paid("e1"))
			}
			s.wantEffects(3)
			s.wantState("e0", "") // the others go on
			s.pruneOn(s.processor, "118 days")
			s.pruneOn(s.processor, "120 days")
			s.pruneOn(s.processor, "122 days")
			s.wantState("e1", "")
			s.wantState("e2", "")
		})
	}
}

func newBodyOf(id string) string { return `{"id":"` + id + `","type":"new"}` }

// Daylight saving time and a correction of the clock take an hour at most.
func TestPruneForgetsNothingByAClockThatWasSetBackByMoreThanAnHour(t *testing.T) {
	t.Parallel()
	for back, refused := range map[string]bool{"50 minutes": false, "70 minutes": true, "20 hours": true} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, "0 days")
			s.pruneOn(s.processor, "10 days")
			s.setClock("10 days -" + back)
			_, err := s.processor.Prune(t.Context())
			if got := err != nil && strings.Contains(err.Error(), "set the clock"); got != refused {
				t.Errorf("Prune says %v, want an error: %t", err, refused)
			}
		})
	}
}

// The clock was ahead for an hour, and Prune ran.
func TestClockThatIsAheadForgetsNothingAtOnce(t *testing.T) {
	t.Parallel()
	for _, ahead := range []string{"60 days", "10 years"} {
		t.Run(ahead, func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, "0 days")
			s.on(pay)
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantAnswer(newBodyOf("e2"), http.StatusOK)
			s.pruneOn(s.processor, "0 days")
			s.pruneOn(s.processor, "1 day")
			for _, later := range []string{"1 minute", "1 hour", "22 hours"} {
				if n := s.pruneOn(s.processor, ahead+" "+later); n != 0 {
					t.Errorf("%s after the clock is ahead %d events are forgotten", later, n)
				}
			}
			s.setClock("1 day 2 hours")
			if n, err := s.processor.Prune(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), "delete from idem_prunes where source = 'notes'") {
				t.Errorf("Prune = %d, %v, want an error that says what to do", n, err)
			}
			s.exec(`delete from idem_prunes where source = 'notes'`)
			s.pruneOn(s.processor, "2 days")
			s.pruneOn(s.processor, "3 days")
			s.wantState("e1", idem.StateDone)
			s.wantState("e2", idem.StateUnhandled)
			s.pruneOn(s.processor, "48 days")
			if n := s.pruneOn(s.processor, "49 days"); n != 2 {
				t.Errorf("%d events are forgotten when they are old, want 2", n)
			}
		})
	}
}

// Prune runs daily, an event comes daily, and each is kept for Retention and three days at most.
func TestDailyPruneForgetsInTime(t *testing.T) {
	t.Parallel()
	s := appWithClock(t, "0 days")
	s.on(pay)
	s.processor.Retention = 31 * 24 * time.Hour
	for day := range 50 {
		s.setClock(fmt.Sprintf("%d days 1 hour", day))
		s.wantAnswer(paid(fmt.Sprint("e", day)), http.StatusOK)
		s.pruneOn(s.processor, fmt.Sprintf("%d days 2 hours", day))
		s.pruneOn(s.processor, fmt.Sprintf("%d days 3 hours", day)) // of another process
		for old := range day + 1 {
			if old > 2 && old < day-36 { // looked at before
				continue
			}
			_, there, err := operator.New(s.processor, "").Lookup(t.Context(), "", fmt.Sprint("e", old))
			if err != nil || there && old < day-34 || !there && old >= day-31 {
				t.Errorf("on day %d the event of day %d is there: %t, %v", day, old, there, err)
			}
		}
	}
}

func TestRetentionThatIsTooShortIsRefused(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.stock(50)
	short := 45 * time.Minute // 45 days were meant
	s.processor.Retention, s.inbox.Retention = short, short
	for name, do := range map[string]func() error{
		"Prune of a processor":    func() error { _, err := s.processor.Prune(t.Context()); return err },
		"DryPrune of a processor": func() error { _, err := s.processor.DryPrune(t.Context()); return err },
		"Prune of an inbox":       func() error { _, err := s.inbox.Prune(t.Context()); return err },
		"Run":                     func() error { return s.inbox.Run(t.Context()) },
		"Drain":                   func() error { return s.inbox.Drain(t.Context()) },
		"Serve":                   func() error { return idem.Serve(t.Context(), &http.Server{Addr: "127.0.0.1:0"}, s.processor) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "Retention is 45m0s") || !strings.Contains(err.Error(), "AllowProcessingTwice") {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	s.inbox.AllowProcessingTwice = true
	s.wantPruned(s.inbox, 3)
	s.inbox.Retention = 0
	if _, err := s.inbox.Prune(t.Context()); err == nil || !strings.Contains(err.Error(), "every event would be forgotten") {
		t.Errorf("without a Retention: %v", err)
	}
}

// Their ids are random: none of them comes again.
func TestOutboxForgetsItsMessagesInDays(t *testing.T) {
	t.Parallel()
	s := appWithClock(t, "0 days")
	outbox, b := outbox.New(s.pool, "shop", &fakeBroker{}), broker.Message{Type: "order.paid", Key: "o1"}
	outbox.Logger = s.logger()
	if err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { return outbox.EmitTx(context.WithoutCancel(t.Context()), tx, b) }); err != nil {
		t.Fatal(err)
	}
	if err := outbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for day, want := range []int64{0, 0, 0, 1} {
		if n := s.pruneOn(outbox, fmt.Sprintf("%d days", day)); n != want && day < 2 {
			t.Errorf("on day %d %d messages are forgotten, want %d", day, n, want)
		}
	}
	if n := queryOne[int](s, `select count(*) from idem_events where event like 'shop/%'`); n != 0 {
		t.Errorf("%d messages are left after three days", n)
	}
}
