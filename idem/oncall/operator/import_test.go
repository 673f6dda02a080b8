package operator_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestImportedEventThatComesAgainIsADuplicateWithoutAConflict(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *testkit.Shop{"work first": testkit.NewShop, "answer first": testkit.NewInboxShop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.On(testkit.Pay)
			old := time.Now().Add(-20 * 24 * time.Hour).Truncate(time.Second)
			imports(s, operator.Imported{Stored: 4, Known: 1}, append(doneBefore("e2", "e1", "not \xff text"),
				operator.OldEvent{ID: "e1", Type: "paid", Key: "o1", Done: true, ReceivedAt: old},
				operator.OldEvent{ID: "e3", Done: true, ReceivedAt: time.Now().Add(time.Hour)})...)
			for _, id := range []string{"e1", "e2", "e1"} {
				if status, answer := s.Deliver(testkit.Paid(id)); status != http.StatusOK || answer != `{"received":true,"duplicate":true}` {
					t.Errorf("%s is answered %d %s, want a duplicate", id, status, answer)
				}
			}
			accept := s.First.Accept
			if s.Inbox != nil {
				accept = s.Inbox.Accept
			}
			if o, err := accept(t.Context(), idem.Event{ID: "not \xff text", Type: "paid"}); o != idem.Duplicate || err != nil {
				t.Errorf("an id that is no text is %s, %v, want a duplicate", o, err)
			}
			s.WantEffects(0)
			conflicts, _, err := operator.New(s.First, "").Conflicts(t.Context(), 100)
			if err != nil || len(conflicts) > 0 || strings.Contains(s.Logged(), "conflict") {
				t.Errorf("conflicts are %v, %v\n%s", conflicts, err, s.Logged())
			}
			s.WantRow("e2", "(type, key, state, body_hash is null)", `("","",done,t)`)
			if late := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_events where received_at > now()`); late != 0 {
				t.Errorf("%d events came in the future", late)
			}
			if status, _ := s.Deliver(testkit.Paid("new")); status != http.StatusOK {
				t.Errorf("a new event is answered %d", status)
			}
		})
	}
}

// Whoever imports while the old program runs imports again when it has stopped.
func TestImportLeavesWhatIsDoneOrDiscarded(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(testkit.Pay)
	s.WantAnswer(testkit.Paid("done"), http.StatusOK)
	s.WantAnswer(testkit.NewBody, http.StatusOK)
	s.Drain(2)
	unhandled := testkit.Identify([]byte(testkit.NewBody)).ID
	s.WantDiscarded(idem.Filter{IDs: []string{unhandled}}, "not ours", 1)
	before := testkit.QueryOne[string](s, s.Pool, `select string_agg(e::text, ' ' order by event) from idem_events e`)
	events := doneBefore("done", unhandled)
	for n := range 2500 {
		events = append(events, doneBefore(fmt.Sprintf("i%d", n))...)
	}
	imports(s, operator.Imported{Stored: 2500, Known: 1, Discarded: 1}, events...)
	imports(s, operator.Imported{Known: 2501, Discarded: 1}, events...)
	after := testkit.QueryOne[string](s, s.Pool, `select string_agg(e::text, ' ' order by event) from idem_events e where type <> ''`)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what was stored (-before +after):\n%s", diff)
	}
}

// The new program got deliveries of events that the old one has done, and could not do them: a
// requeue or a replay would do them a second time.
func TestImportedEventThatWaitsHereIsNotDoneAgainAndItsEntityGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		wait   func(*testkit.Till) // e1 of o1, and what comes after it
		ledger []string            // what is booked afterwards, of events that the old program has not done
	}{
		{"it had no handler", func(s *testkit.Till) {
			s.WantAnswer(`{"id":"e1","type":"new","order":"o1"}`, http.StatusOK)
		}, nil},
		{"it has failed, and is tried again", func(s *testkit.Till) {
			s.Fails("e1")
			s.Inbox.MaxAttempts = 2
			s.Store(testkit.At(0, "e1", "paid", "o1"))
			s.Drain(1)
		}, nil},
		{"it is parked, and another waits for it", func(s *testkit.Till) {
			s.Fails("e1")
			s.Store(testkit.At(1, "e1", "paid", "o1"))
			s.Drain(1)
			s.Store(testkit.At(2, "e2", "refunded", "o1"))
		}, []string{"e2 refunded"}},
		{"it waits for another", func(s *testkit.Till) {
			s.Fails("e0")
			s.Store(testkit.At(0, "e0", "paid", "o1"), testkit.At(1, "e1", "refunded", "o1"), testkit.At(2, "e2", "paid", "o1"))
			s.Drain(1)
		}, []string{"e0 paid", "e2 paid"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := testkit.NewTill(t)
			s.OpenInbox()
			s.Inbox.MaxAttempts = 1
			c.wait(s)
			imports(s.Shop, operator.Imported{Completed: 1}, doneBefore("e1")...)
			s.WantState("e1", idem.StateDone)
			s.WantPayload("e1", "")
			s.Fails()
			s.Handle("paid", "refunded", "new")
			if _, err := s.First.Replay(t.Context(), idem.Filter{}); err != nil {
				t.Error(err)
			}
			s.OpenInbox()
			s.Drain()
			s.WantAnswer(testkit.About("e1", "paid", "o1"), http.StatusOK)
			s.WantLedger(c.ledger...)
		})
	}
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	broken := errors.New("the old table cannot be read")
	for _, c := range []struct {
		reason, scope string
		events        iter.Seq2[operator.OldEvent, error]
		stored        int64
		says          string
	}{
		{"a long scope", strings.Repeat("x", 256), sequence(doneBefore("e1")...), 0, "the scope has 256 bytes"},
		{"an empty id", "", sequence(doneBefore("e1", "")...), 1, "an event has no id"},
		{"an error", "shop", func(yield func(operator.OldEvent, error) bool) {
			_ = yield(doneBefore("e1")[0], nil) && yield(operator.OldEvent{}, broken)
		}, 1, broken.Error()},
	} {
		got, err := operator.New(s.First, "ana").Import(t.Context(), c.scope, c.events, "")
		if got != (operator.Imported{Stored: c.stored}) || err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "operator: importing events: ") {
			t.Errorf("%s: Import = %s, %v, want %d stored and %q", c.reason, got, err, c.stored, c.says)
		}
	}
	events := asaas.NewDispatcher("")
	events.Accounts = func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Scope: "shop", Secrets: []string{"a token that only Asaas knows"}}}, nil
	}
	scoped := operator.New(testkit.NewFirst(s.Pool, events), "ana")
	if _, err := scoped.Import(t.Context(), "", sequence(doneBefore("e1")...), ""); err == nil || !strings.Contains(err.Error(), "gives every event one") {
		t.Errorf("without the scope that every event has: %v", err)
	}
}

// A first receiver that answers before it works has rows that are to be processed yet.
func TestImportTakesNoEventForDoneThatTheOldProgramHasNotDone(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(testkit.Pay)
	s.Store(testkit.Letter("e1", "o1", 1))
	imports(s, operator.Imported{NotDone: 3}, operator.OldEvent{ID: "e1"}, operator.OldEvent{ID: "e2"}, operator.OldEvent{ID: "e3"})
	s.Store(testkit.Letter("e2", "o1", 2))
	s.Drain(2)
	s.WantEffects(2)
}

// What runs here may come to its end, and then both would have its effect: somebody has to look.
func TestImportLeavesWhatIsBeingProcessed(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"a worker", "a worker that has claimed it, and not begun"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := testkit.NewInboxShop(t)
			entered, release := make(chan struct{}), make(chan struct{})
			s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
				close(entered)
				<-release
				return testkit.Pay(ctx, tx, n)
			})
			var work sync.WaitGroup
			s.Store(testkit.Letter("e1", "o1", 1))
			if mode == "a worker" {
				work.Go(func() { s.Drain(1) })
			} else {
				s.ClaimElsewhere("e1")
				close(entered)
			}
			<-entered
			imports(s, operator.Imported{Busy: 1}, doneBefore("e1")...)
			close(release)
			work.Wait()
			if mode != "a worker that has claimed it, and not begun" {
				s.WantEffects(1)
				imports(s, operator.Imported{Known: 1}, doneBefore("e1")...)
				return
			}
			s.Exec(`delete from idem_workers where id = 1`) // that worker is dead
			imports(s, operator.Imported{Completed: 1}, doneBefore("e1")...)
			s.Drain()
			s.WantEffects(0)
		})
	}
}

func TestImportWaitsForAFirstTry(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	delivered := s.StartDelivery() // which goes on once the import waits for it
	imports(s, operator.Imported{Known: 1}, doneBefore("e1")...)
	delivered()
	s.WantEffects(1)
}

func TestImportedEventsAreFoundByTheirEntity(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	imports(s, operator.Imported{Stored: 2}, operator.OldEvent{ID: "e1", Type: "paid", Key: "o1", Done: true},
		operator.OldEvent{ID: "e2", Type: "not \xff text", Key: strings.Repeat("k", 256), Done: true})
	for key, want := range map[string]string{"o1": "e1 paid done", idem.BodyID([]byte(strings.Repeat("k", 256))): "e2  done"} {
		found, err := operator.New(s.First, "").OfKey(t.Context(), []string{""}, key, 10)
		if err != nil || len(found) != 1 || found[0].ID+" "+found[0].Type+" "+string(found[0].State) != want {
			t.Errorf("of %s there is %v, %v, want %s", key, found, err, want)
		}
	}
}

func TestTheTrailSaysWhatAnImportHasMadeDone(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.WantAnswer(testkit.NewBody, http.StatusOK) // unhandled
	unhandled := testkit.Identify([]byte(testkit.NewBody)).ID
	imports(s, operator.Imported{Stored: 1, Completed: 1}, doneBefore("e9", unhandled)...)
	o := operator.New(s.First, "")
	actions, err := o.ActionsOn(t.Context(), "", unhandled, 10)
	if err != nil || len(actions) != 1 || actions[0].Actor != "ana" || actions[0].Action.Action != "import" || actions[0].Outcome != "imported" ||
		actions[0].Filter != "into notes without a scope" || actions[0].Reason != "from our own" ||
		actions[0].Result != "1 stored, 1 that waited are done, 0 known; left alone: 0 being processed, 0 discarded, 0 not done by the other program" {
		t.Errorf("the trail has %+v, %v", actions, err)
	}
}

// imports has the receiver take over what the old program has done.
func imports(s *testkit.Shop, want operator.Imported, events ...operator.OldEvent) {
	s.Helper()
	got, err := operator.New(s.First, "ana").Import(s.Context(), "", sequence(events...), "from our own")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		s.Fatalf("Import: %v (-want +got):\n%s", err, diff)
	}
}

// sequence yields events without errors.
func sequence(events ...operator.OldEvent) iter.Seq2[operator.OldEvent, error] {
	return func(yield func(operator.OldEvent, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// doneBefore are events that the old program has done.
func doneBefore(ids ...string) (events []operator.OldEvent) {
	for _, id := range ids {
		events = append(events, operator.OldEvent{ID: id, Done: true})
	}
	return events
}
