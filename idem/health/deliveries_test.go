package health_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/internal/testkit"
)

func TestHealthTurnsRedBeforeTheProviderStopsItsQueue(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	broken := true
	s.On(func(context.Context, pgx.Tx, *testkit.Note) error {
		if broken {
			return errors.New("a mistake")
		}
		return nil
	})
	for range 4 {
		s.WantAnswer(testkit.Paid("e1"), http.StatusServiceUnavailable)
	}
	s.WantHealth("4 in a row", s.NewHealth(s.First), "", "")
	s.WantAnswer(testkit.Paid("e2"), http.StatusServiceUnavailable)
	s.WantHealth("5 in a row", s.NewHealth(s.First), "deliveries", "5 deliveries have failed in a row: handler_failed 5: see the errors in this application's log, and put right what they say, before the provider slows down its queue")
	lenient := s.NewHealth(s.First)
	lenient.MaxFailures = 6
	s.WantHealth("6 are allowed", lenient, "", "")
	lenient = s.NewHealth(s.First)
	lenient.MaxFailures = 0
	s.WantHealth("it does not look", lenient, "", "")
	broken = false
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.WantHealth("one was acknowledged", s.NewHealth(s.First), "", "")
}

func TestStrangersDoNotMakeHealthRed(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	for status, token := range map[int]string{401: "wrong", 503: "none"} {
		for range 5 {
			if got, _, err := s.Post(t.Context(), testkit.Paid("e1"), map[string]string{"token": token}); got != status || err != nil {
				t.Fatalf("a delivery with the token %q is answered %d, %v", token, got, err)
			}
		}
		if token == "wrong" {
			s.WantHealth("their token is wrong", s.NewHealth(s.First), "", "")
			s.First = s.NewFirst()
			continue
		}
		s.WantHealth("there is no token to verify with", s.NewHealth(s.First), "deliveries", "5 deliveries have failed")
		s.First = s.NewFirst()
	}
	unsure := map[string]string{"token": "unsure"}
	for range 5 {
		_, _, _ = s.Post(t.Context(), testkit.Paid("e1"), unsure)
	}
	s.WantHealth("accounts cannot be looked up", s.NewHealth(s.First), "deliveries", "5 deliveries have failed")
}

// Their handlers run twice.
func TestFirstTriesThatTakeLongerThanAnswerWithinMakeHealthRed(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.WorkersElsewhere("notes")
	ran := 0
	s.On(func(ctx context.Context, _ pgx.Tx, _ *testkit.Note) error {
		ran++
		<-ctx.Done()
		return ctx.Err()
	})
	s.First.AnswerWithin = 20 * time.Millisecond
	for n := 0; ran < 20; n++ { // a try of which the time is over before its handler runs says nothing
		if ran == 19 {
			s.WantHealth("19 are too few to say", s.NewHealth(s.First), "", "")
		}
		s.WantAnswer(testkit.About(fmt.Sprint(n), "paid", fmt.Sprint(n)), http.StatusOK)
	}
	s.WantHealth("20 of 20", s.NewHealth(s.First), "answer within", "of the last 20 first tries 20 took too long: their handlers run again in workers")
}

// An inbox answers 200 whatever its handlers do.
func TestAnInboxWhoseHandlersAllFailMakesHealthRed(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	broken := true
	s.On(func(context.Context, pgx.Tx, *testkit.Note) error {
		if broken {
			return errors.New("a mistake")
		}
		return nil
	})
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	for n := range 5 {
		s.WantHealth(fmt.Sprintf("%d have failed", n), s.NewHealth(s.Inbox), "", "")
		s.Store(testkit.Letter(fmt.Sprintf("e%d", n), fmt.Sprintf("o%d", n), 0))
		s.Drain(1)
	}
	s.WantHealth("all of five", s.NewHealth(s.Inbox), "handlers", "5 events have failed in a row in the workers of this process: see the errors")
	hasty := s.NewHealth(s.Inbox)
	hasty.MaxFailing = 0
	s.WantHealth("of those that fail for long it does not ask", hasty, "handlers", "5 events have failed in a row")
	other := s.NewInbox(s.Pool)
	s.WantHealth("another process has not tried any", s.NewHealth(other), "", "")
	s.Exec(`update idem_payloads set received_at = now() - interval '11 minutes'`)
	s.WantHealth("it reads of them", s.NewHealth(other), "failing", "5 events fail")
	s.WantHealth("so does this one", s.NewHealth(s.Inbox), "handlers and failing", "5 events fail")
	off := s.NewHealth(s.Inbox)
	off.MaxFailures, off.MaxFailing = 0, 0
	s.WantHealth("it does not look", off, "", "")
	broken = false
	s.Exec(`update idem_payloads set due_at = now()`)
	s.Drain(5)
	s.WantHealth("the handlers are mended", s.NewHealth(s.Inbox), "", "")
}

func TestOneEventThatFailsAgainAndAgainIsNotAllHandlers(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(func(context.Context, pgx.Tx, *testkit.Note) error { return errors.New("a mistake") })
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	s.Inbox.MaxAttempts = 7
	s.Store(testkit.Letter("e1", "o1", 0))
	for range 7 {
		s.WantHealth("it fails", s.NewHealth(s.Inbox), "", "")
		s.Exec(`update idem_payloads set due_at = now()`)
		s.Drain(1)
	}
	s.WantHealth("it has failed for the last time", s.NewHealth(s.Inbox), "parked", "1 event is parked")
}
