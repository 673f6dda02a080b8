package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

const otherBody = `{"id":"e1","type":"paid","order":"o9"}`

// conflicts are, of each observed delivery, whether its body was another one.
func (s *app) conflicts() (all []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.observed {
		if o.Stage == idem.StageDelivery {
			all = append(all, o.Conflict)
		}
	}
	return all
}

func (s *app) wantConflicts(want ...operator.Conflict) {
	s.Helper()
	for name, list := range map[string]func(context.Context, int) ([]operator.Conflict, int64, error){"processor": operator.New(s.processor, "").Conflicts, "inbox": operator.New(s.inbox, "").Conflicts} {
		got, all, err := list(s.Context(), 100)
		if all != int64(len(want)) {
			s.Errorf("Conflicts of the %s counts %d, want %d", name, all, len(want))
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(operator.Conflict{}, "At"), cmpopts.EquateEmpty()); diff != "" || err != nil {
			s.Errorf("Conflicts of the %s (-want +got): %v\n%s", name, err, diff)
		}
		for _, c := range got {
			if age := time.Since(c.At); age < -time.Hour || age > time.Hour {
				s.Errorf("the conflict came %s ago", age)
			}
		}
	}
}

// An id that was used twice, or two accounts at one address: the second body is a
// duplicate, as ever, but somebody can notice.
func TestAnotherBodyWithTheSameIDIsNoticed(t *testing.T) {
	t.Parallel()
	for mode, state := range map[string]idem.State{"inline": idem.StateDone, "inbox": idem.StatePending} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newApp(t).openInbox()
			s.on(pay)
			if mode == "inbox" {
				s.endpoint(s.inbox, idem.StatePending)
			}
			for n, body := range []string{paid("e1"), paid("e1"), otherBody, otherBody, paid("e1"), paid("e2")} {
				want := `{"received":true,"duplicate":true}`
				if n == 0 || n == 5 {
					want = `{"received":true}`
				}
				if status, answer := s.deliver(body); status != http.StatusOK || answer != want {
					t.Errorf("delivery %d was answered %d %s, want %s", n+1, status, answer, want)
				}
			}
			if diff := cmp.Diff([]bool{false, false, true, true, false, false}, s.conflicts()); diff != "" {
				t.Error("observed conflicts (-want +got):\n" + diff)
			}
			if n := strings.Count(s.logged(), "webhook conflict"); n != 1 {
				t.Errorf("the conflict is logged %d times, want once\n%s", n, s.logged())
			}
			if strings.Contains(s.logged(), "o9") {
				t.Error("the log tells what is in the body")
			}
			first := idem.Event{Source: "notes", ID: "e1", Type: "paid", Key: "o1"}
			s.wantConflicts(operator.Conflict{Event: first, State: state})
			if mode == "inbox" {
				s.drain(2)
			}
			s.wantEffects(2)
			s.wantState("e1", idem.StateDone)
			s.wantConflicts(operator.Conflict{Event: first, State: idem.StateDone})
			s.exec(`update idem_events set received_at = '2020-01-01'`)
			s.wantPruned(s.processor, 2)
			s.wantConflicts()
		})
	}
}

// Deliveries of one event at the same time share an attempt; those of two bodies do not.
func TestAnotherBodyIsNoticedWhileTheFirstIsProcessed(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	delivered := s.startDelivery()
	s.wantAnswer(otherBody, http.StatusOK)
	delivered()
	s.wantEffects(1)
	s.wantConflicts(operator.Conflict{Event: idem.Event{Source: "notes", ID: "e1", Type: "paid", Key: "o1"}, State: idem.StateDone})
}

// Accounts are told apart by their scope, and sources by their name.
func TestConflictsAreOfOneAccountAndOneSource(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.on(pay)
	s.exec(`insert into idem_events (event, type, key, state, conflict_at) values ('notes2//e1', 'paid', '', 'done', now())`)
	for _, c := range []struct{ account, body string }{{"a", paid("e1")}, {"b", otherBody}} {
		if status, _, err := s.post(t.Context(), c.body, map[string]string{"account": c.account}); status != http.StatusOK || err != nil {
			t.Fatal(status, err)
		}
	}
	s.wantEffects(2)
	s.wantConflicts()
}

// A kept event takes the body that is delivered, or keeps its own: in any case
// one of the two is not processed.
func TestAnotherBodyOfAnEventThatIsNotDoneIsNoticed(t *testing.T) {
	t.Parallel()
	for mode, c := range map[string]struct {
		again   func(*app)
		outcome idem.Outcome
	}{
		"inline": {func(s *app) { s.wantAnswer(otherBody, http.StatusOK) }, idem.Done},
		"inbox":  {func(s *app) { s.store(identify([]byte(otherBody))); s.drain(1) }, idem.Pending},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newApp(t).openInbox()
			broken := true
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if broken {
					return errors.New("no such order")
				}
				return pay(ctx, tx, n)
			})
			s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
			broken = false
			c.again(s)
			s.wantEffects(1)
			s.wantState("e1", idem.StateDone)
			if diff := cmp.Diff([]bool{false, true}, s.conflicts()); diff != "" {
				t.Error("observed conflicts (-want +got):\n" + diff)
			}
			if got := s.outcomes()[1]; got != c.outcome {
				t.Errorf("the outcome is %s, want %s", got, c.outcome)
			}
			if n := strings.Count(s.logged(), "webhook conflict"); n != 1 {
				t.Errorf("the conflict is logged %d times, want once", n)
			}
			s.wantConflicts(operator.Conflict{Event: idem.Event{Source: "notes", ID: "e1", Type: "paid", Key: "o1"}, State: idem.StateDone})
		})
	}
}

// No handler runs for them: they are looked up on another way.
func TestAnotherBodyOfAnEventWithoutAHandlerIsNoticed(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	for _, body := range []string{newBody, newBody, `{"id":"e1","type":"new","order":"o9"}`, newBody} {
		s.wantAnswer(body, http.StatusOK)
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, s.conflicts()); diff != "" {
		t.Error("observed conflicts (-want +got):\n" + diff)
	}
	s.wantPayload("e1", newBody)
	s.wantConflicts(operator.Conflict{Event: idem.Event{Source: "notes", ID: "e1", Type: "new", Key: "o1"}, State: idem.StateUnhandled})
}
