package outbox_test

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
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestErrorsThatAreTheMessagesOwnAreCountedAndStopNoOtherMessage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why  string
		err  error
		want string
	}{
		{"no limit is raised while it is tried", fmt.Errorf("broker: %w", broker.ErrTooLarge), "parked 2"},
		{"nobody makes the queue", fmt.Errorf("broker: %w", broker.ErrNoQueue), "parked 2"},
		{"the publisher says so", idem.NoRetry(errors.New("no such customer")), "parked 1"},
		{"the publisher waits for something else", idem.RetryAt(time.Now().Add(time.Hour), errors.New("closed")), "pending 0"},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			s, w := testkit.NewShop(t), &testkit.Broker{Refuse: func(m broker.Message) error {
				if m.ID == "0" {
					return test.err
				}
				return nil
			}}
			outbox := newOutbox(s, w)
			outbox.Workers, outbox.MaxAttempts = 1, 2
			emitMany(s, outbox, 3)
			s.Drain()
			s.WantRow("0", "state || ' ' || attempts", test.want)
			w.Want(t, "order.paid o1 ", "order.paid o2 ")
		})
	}
}

func TestDrainSaysThatTheBrokerIsUnavailableAndTheNextOneGoesOn(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{Refuse: func(broker.Message) error { return errors.New("connection refused") }}
	outbox := newOutbox(s, w)
	outbox.Workers = 1
	emitMany(s, outbox, 100)
	for range 2 {
		if err := outbox.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("Drain = %v, want the broker's error", err)
		}
	}
	if n := len(s.Worked); n > 6 {
		t.Errorf("%d messages were tried", n)
	}
	w.Refuse = nil
	s.Drain()
	if n := len(w.Published()); n < 90 {
		t.Errorf("%d messages were published, want all but those that wait", n)
	}
}

func TestOutageOfTheBrokerMakesHealthRed(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{Refuse: func(broker.Message) error { return errors.New("connection refused by 10.0.0.7") }}
	outbox := newOutbox(s, w)
	s.WantHealth("nothing was published", s.NewHealth(outbox), "", "")
	emitMany(s, outbox, 1)
	if err := outbox.Drain(t.Context()); err == nil {
		t.Error("Drain returned nil")
	}
	s.WantHealth("it has just begun", s.NewHealth(outbox), "", "")
	strict := s.NewHealth(outbox)
	strict.MaxPending = time.Nanosecond
	s.WantHealth("it lasts", strict, "broker", "it has taken no message for")
	if !strings.Contains(s.Logged(), "10.0.0.7") {
		t.Error("the log does not have the broker's error")
	}
	w.Refuse = nil
	s.Exec(`update idem_payloads set due_at = now()`)
	s.Drain(1)
	over := s.NewHealth(outbox)
	over.MaxPending = time.Nanosecond
	s.WantHealth("it is over", over, "", "")
}

// A replay by hand counts it no more than workers do, and does not try one message after the other.
func TestReplayStopsAtAnOutageOfTheBrokerAndChangesNoMessage(t *testing.T) {
	t.Parallel()
	s, calls := testkit.NewShop(t), 0
	w := &testkit.Broker{Refuse: func(broker.Message) error { calls++; return errors.New("connection refused") }}
	outbox := newOutbox(s, w)
	emitMany(s, outbox, 3)
	s.Exec(`update idem_events set state = 'parked', attempts = 2 where event = 'shop//2'`)
	s.Exec(`update idem_payloads set due_at = null where event = 'shop//2'`)
	const rows = `select string_agg((to_jsonb(e) - 'starts')::text || to_jsonb(p)::text, ' ' order by event) from idem_events e join idem_payloads p using (event)`
	before := testkit.QueryOne[string](s, s.Pool, rows)
	for n, states := range [][]idem.State{{idem.StatePending}, {idem.StateParked}, {idem.StatePending, idem.StateParked}} {
		sum, err := outbox.Replay(t.Context(), idem.Filter{States: states})
		if err == nil || !strings.Contains(err.Error(), "replay stopped at order.paid") || !strings.Contains(err.Error(), "connection refused") || sum.Failed != 0 || calls != n+1 {
			t.Errorf("Replay of %v = %+v, %v, after %d calls", states, sum, err, calls)
		}
	}
	if diff := cmp.Diff(before, testkit.QueryOne[string](s, s.Pool, rows)); diff != "" {
		t.Error("the messages (-want +got):\n" + diff)
	}
	w.Refuse = nil
	sum, err := outbox.Replay(t.Context(), idem.Filter{States: []idem.State{idem.StatePending, idem.StateParked}})
	if sum.Done != 3 || err != nil {
		t.Errorf("once the broker is available: Replay = %+v, %v, want all published", sum, err)
	}
	w.Want(t, "order.paid o0 ", "order.paid o1 ", "order.paid o2 ")
}

func TestSecondMessageWithAnIDAndAnotherBodyIsListedAndFailsNoHandler(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		return errors.Join(testkit.Pay(ctx, tx, n), outbox.Emit(ctx, broker.Message{ID: "receipt", Type: "order.paid", Key: "o1", Body: []byte(n.ID)}))
	})
	for _, id := range []string{"e1", "e2", "e3"} {
		s.WantAnswer(testkit.Paid(id), http.StatusOK)
	}
	s.WantEffects(3)
	s.Drain()
	w.Want(t, "order.paid o1 e1")
	if n := strings.Count(s.Logged(), "outbox conflict: another message was emitted with this ID before"); n != 1 {
		t.Errorf("it is logged %d times, want once:\n%s", n, s.Logged())
	}
	found, all, err := operator.New(outbox.Inbox, "ana").Conflicts(t.Context(), 10)
	if err != nil || all != 1 || len(found) != 1 || found[0].Event.ID != "receipt" {
		t.Errorf("the conflicts are %v, %d, %v, want that of receipt", found, all, err)
	}
	err = pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		return outbox.EmitTx(t.Context(), tx, broker.Message{ID: "other", Type: "order.paid", Body: []byte("1")})
	})
	again := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		return outbox.EmitTx(t.Context(), tx, broker.Message{ID: "other", Type: "order.paid", Body: []byte("2")})
	})
	if err != nil || again != nil || strings.Count(s.Logged(), "outbox conflict") != 2 {
		t.Errorf("EmitTx = %v, then %v, and the log is\n%s", err, again, s.Logged())
	}
}

// publisher is a publisher in a function.
type publisher func(context.Context, broker.Message) error

func (p publisher) Publish(ctx context.Context, m broker.Message) error { return p(ctx, m) }

// emitMany emits n messages of as many Keys.
func emitMany(s *testkit.Shop, o *outbox.Outbox, n int) {
	s.Helper()
	err := pgx.BeginFunc(s.Context(), s.Pool, func(tx pgx.Tx) error {
		for k := range n {
			if err := o.EmitTx(s.Context(), tx, broker.Message{Type: "order.paid", ID: fmt.Sprint(k), Key: fmt.Sprint("o", k)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// A publisher that refuses some messages, and a broker that is away, look the same until another message goes through.
func TestRefusedMessagesHoldUpNoOther(t *testing.T) {
	t.Parallel()
	refused, good := testkit.Size(5, 40), 100
	s := testkit.NewShop(t)
	var mu sync.Mutex
	published := 0
	outbox := newOutbox(s, publisher(func(_ context.Context, m broker.Message) error {
		if strings.HasPrefix(m.ID, "bad") {
			return errors.New("400 Bad Request")
		}
		mu.Lock()
		defer mu.Unlock()
		published++
		return nil
	}))
	outbox.MaxAttempts = 2
	err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		for n := range refused + good {
			id := fmt.Sprint("good", n)
			if n < refused {
				id = fmt.Sprint("bad", n)
			}
			if err := outbox.EmitTx(t.Context(), tx, broker.Message{ID: id, Type: "order.paid", Key: id}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start(outbox.Inbox)
	s.Until(`select count(*) = $1 from idem_events where state = 'done'`, good)
	more := 0
	for parked := 0; parked < refused; parked = testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_events where state = 'parked' and attempts = 2`) {
		more++ // without which nobody knows that the broker is there
		if err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error { return outbox.EmitTx(t.Context(), tx, broker.Message{Type: "order.paid"}) }); err != nil {
			t.Fatal(err)
		}
		s.Until(`select count(*) = $1 from idem_events where state = 'done'`, good+more)
	}
	mu.Lock()
	defer mu.Unlock()
	if published < good {
		t.Errorf("%d messages were published, want %d and some of %d", published, good, more)
	}
	s.WantHealth("the broker is there", s.NewHealth(outbox.Inbox), "parked", fmt.Sprint(refused, " events are parked"))
}
