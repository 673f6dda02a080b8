package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestConcurrentDuplicatesHaveOneEffectAndAllGet200(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			release := make(chan struct{})
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				<-release
				return pay(ctx, tx, n)
			})
			if statuses := s.deliverAtOnce(n, paid("e1"), release); statuses[http.StatusOK] != n {
				t.Errorf("answers: %v, want %d times 200", statuses, n)
			}
			s.WantEffects(1)
		})
	}
}

func TestConcurrentDuplicatesOfAFailingEventShareItsFailure(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(context.Context, pgx.Tx, *note) error {
		close(entered) // panics if a second attempt runs while the first is in flight
		<-release
		return errors.New("no such order")
	})
	var deliveries sync.WaitGroup
	for range 2 {
		deliveries.Go(func() { s.WantAnswer(paid("e1"), http.StatusServiceUnavailable) })
		<-entered
	}
	close(release)
	deliveries.Wait()
}

// Two inboxes on one database know as little of each other as two processes.
func TestConcurrentDuplicateInAnotherProcessWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 4))
	other := s.NewFirst()
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID != "e1" {
			return pay(ctx, tx, n)
		}
		close(entered) // panics in a second attempt
		<-release
		return pay(ctx, tx, n)
	})
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.WantAnswer(paid("e1"), http.StatusOK) })
	<-entered
	deliveries.Go(func() {
		if outcome, err := other.Accept(t.Context(), identify([]byte(paid("e1")))); outcome != idem.Duplicate || err != nil {
			t.Errorf("the duplicate's outcome is %s, %v, want duplicate", outcome, err)
		}
	})
	s.WantAnswer(about("other", "paid", "o2"), http.StatusOK) // waits for neither
	close(release)
	deliveries.Wait()
	s.WantEffects(2)
}

func TestConcurrentDuplicateInAnotherProcessTakesOverWhenTheFirstFails(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	other := s.NewFirst()
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		first := false
		once.Do(func() { first = true })
		if !first {
			return pay(ctx, tx, n)
		}
		close(entered)
		<-release
		return errors.New("no such order")
	})
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.Deliver(paid("e1")) }) // 503, or 200 if the duplicate is done by the time that is said
	<-entered
	deliveries.Go(func() {
		if outcome, err := other.Accept(t.Context(), identify([]byte(paid("e1")))); outcome != idem.Done || err != nil {
			t.Errorf("the duplicate's outcome is %s, %v, want done", outcome, err)
		}
	})
	close(release)
	deliveries.Wait()
	s.WantEffects(1)
}

func TestSlowEventHasOneConnectionHoweverManyDuplicatesItHas(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 2))
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "slow" {
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.WantAnswer(paid("slow"), http.StatusOK) })
	<-entered
	for range 100 {
		deliveries.Go(func() { s.WantAnswer(paid("slow"), http.StatusOK) })
	}
	for i := range 5 { // within the time of the first try
		s.WantAnswer(about(fmt.Sprint(i), "paid", fmt.Sprint(i)), http.StatusOK)
	}
	close(release)
	deliveries.Wait()
	s.WantEffects(6)
}

func TestPoolOfOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	s.On(pay)
	s.Notes.Ignore("viewed")
	var deliveries sync.WaitGroup
	for i := range 20 {
		deliveries.Go(func() { s.WantAnswer(paid(fmt.Sprint(i%10)), http.StatusOK) })
	}
	deliveries.Wait()
	s.WantEffects(10)
}

// Two events are two, whatever their ids and bodies look like side by side.
func TestEventInFlightIsNoOther(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	first, second := idem.Event{ID: "a\n", Type: "any", Payload: []byte("1")}, idem.Event{ID: "a", Type: "any", Payload: []byte("\n1")}
	s.First.Timeout = 10 * time.Second // where the second waits for the first
	idem.Handle(&s.Notes.Routes, "any", func(ctx context.Context, _ pgx.Tx, _ *int) error {
		if e, _ := idem.EventFrom(ctx); e.ID == first.ID {
			_, err := s.First.Accept(ctx, second)
			return err
		}
		return nil
	})
	if o, err := s.First.Accept(t.Context(), first); o != idem.Done {
		t.Errorf("Accept = %s, %v, want done", o, err)
	}
	s.WantState("a", idem.StateDone)
}

// Nothing is stored of which the others could be duplicates.
func TestConcurrentDuplicatesOfAnIgnoredTypeAreAllIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &slowIgnorer{}
		source.Ignore("viewed")
		p := newFirst(nowhere, source) // nobody asks Postgres
		p.Logger = nil
		outcomes := make([]idem.Outcome, 10)
		var deliveries sync.WaitGroup
		for n := range outcomes {
			deliveries.Go(func() {
				var err error
				if outcomes[n], err = p.Accept(t.Context(), identify([]byte(`{"id":"e1","type":"viewed"}`))); err != nil {
					t.Error(err)
				}
			})
		}
		deliveries.Wait()
		if diff := cmp.Diff(slices.Repeat([]idem.Outcome{idem.Ignored}, len(outcomes)), outcomes); diff != "" {
			t.Error("outcomes (-want +got):\n" + diff)
		}
	})
}

// An id that was used twice, or two accounts at one address: the second body is a
// duplicate, as ever, but somebody can notice.
func TestAnotherBodyWithTheSameIDIsNoticed(t *testing.T) {
	t.Parallel()
	for mode, state := range map[string]idem.State{"inline": idem.StateDone, "inbox": idem.StatePending} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newApp(t).openInbox()
			s.On(pay)
			if mode == "inbox" {
				s.endpoint(s.Inbox, idem.StatePending)
			}
			for n, body := range []string{paid("e1"), paid("e1"), otherBody, otherBody, paid("e1"), paid("e2")} {
				want := `{"received":true,"duplicate":true}`
				if n == 0 || n == 5 {
					want = `{"received":true}`
				}
				if status, answer := s.Deliver(body); status != http.StatusOK || answer != want {
					t.Errorf("delivery %d was answered %d %s, want %s", n+1, status, answer, want)
				}
			}
			if diff := cmp.Diff([]bool{false, false, true, true, false, false}, s.conflicts()); diff != "" {
				t.Error("observed conflicts (-want +got):\n" + diff)
			}
			if n := strings.Count(s.Logged(), "webhook conflict"); n != 1 {
				t.Errorf("the conflict is logged %d times, want once\n%s", n, s.Logged())
			}
			if strings.Contains(s.Logged(), "o9") {
				t.Error("the log tells what is in the body")
			}
			first := idem.Event{Source: "notes", ID: "e1", Type: "paid", Key: "o1"}
			s.wantConflicts(operator.Conflict{Event: first, State: state})
			if mode == "inbox" {
				s.Drain(2)
			}
			s.WantEffects(2)
			s.WantState("e1", idem.StateDone)
			s.wantConflicts(operator.Conflict{Event: first, State: idem.StateDone})
			s.Exec(`update idem_events set received_at = '2020-01-01'`)
			s.wantPruned(s.First, 2)
			s.wantConflicts()
		})
	}
}

// Deliveries of one event at the same time share an attempt; those of two bodies do not.
func TestAnotherBodyIsNoticedWhileTheFirstIsProcessed(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	delivered := s.StartDelivery()
	if o, err := s.NewFirst().Accept(t.Context(), identify([]byte(otherBody))); o != idem.Duplicate || err != nil { // of another process
		t.Errorf("Accept = %s, %v, want duplicate", o, err)
	}
	delivered()
	s.WantEffects(1)
	s.wantConflicts(operator.Conflict{Event: idem.Event{Source: "notes", ID: "e1", Type: "paid", Key: "o1"}, State: idem.StateDone})
}

// Accounts are told apart by their scope, and sources by their name.
func TestConflictsAreOfOneAccountAndOneSource(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.On(pay)
	s.Exec(`insert into idem_events (event, type, key, state, conflict_at) values ('notes2//e1', 'paid', '', 'done', now())`)
	for _, c := range []struct{ account, body string }{{"a", paid("e1")}, {"b", otherBody}} {
		if status, _, err := s.Post(t.Context(), c.body, map[string]string{"account": c.account}); status != http.StatusOK || err != nil {
			t.Fatal(status, err)
		}
	}
	s.WantEffects(2)
	s.wantConflicts()
}

// deliverAtOnce posts n deliveries of one event and returns how often each status
// was answered. The handler must wait for release, which is closed once all are
// sent, so that all but the first are concurrent duplicates.
func (s *app) deliverAtOnce(n int, body string, release chan struct{}) map[int]int {
	s.Helper()
	var mu sync.Mutex
	var started, done sync.WaitGroup
	statuses := make(map[int]int)
	started.Add(n)
	for range n {
		done.Go(func() {
			started.Done()
			status, _, err := s.Post(s.Context(), body, nil)
			if err != nil {
				s.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	started.Wait()
	close(release)
	done.Wait()
	return statuses
}

// slowIgnorer is a provider that takes its time, in a bubble of synctest: all who ask
// meanwhile are answered at the same time.
type slowIgnorer struct{ notes }

func (s *slowIgnorer) Ignores(eventType string) bool {
	time.Sleep(time.Second)
	return s.notes.Ignores(eventType)
}

const otherBody = `{"id":"e1","type":"paid","order":"o9"}`

// conflicts are, of each observed delivery, whether its body was another one.
func (s *app) conflicts() (all []bool) {
	for _, o := range s.Observed() {
		if o.Stage == idem.StageDelivery {
			all = append(all, o.Conflict)
		}
	}
	return all
}

func (s *app) wantConflicts(want ...operator.Conflict) {
	s.Helper()
	for name, list := range map[string]func(context.Context, int) ([]operator.Conflict, int64, error){"works first": operator.New(s.First, "").Conflicts, "inbox": operator.New(s.Inbox, "").Conflicts} {
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
