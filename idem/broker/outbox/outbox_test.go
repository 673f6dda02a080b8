package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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

func TestMain(m *testing.M) { testkit.Main(m) }

func TestMessageIsPublishedOnceItsHandlersTransactionIsCommitted(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	fails := true
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		if err := outbox.Emit(ctx, paidMessage(n)); err != nil {
			return err
		}
		if fails {
			return errors.New("no such order")
		}
		return testkit.Pay(ctx, tx, n)
	})
	s.WantAnswer(testkit.Paid("e1"), http.StatusServiceUnavailable)
	s.Drain(0)
	fails = false
	if o, err := s.First.DryRun(t.Context(), testkit.Identify([]byte(testkit.Paid("e1")))); o != idem.Done {
		t.Error(o, err)
	}
	s.Drain(0)
	w.Want(t)
	for range 3 {
		s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	}
	s.Drain(1)
	w.Want(t, "order.paid o1 e1")
	if m := w.Published()[0]; m.Source != "shop" || len(m.ID) < 20 || time.Since(m.Time) > time.Hour {
		t.Errorf("published %+v", m)
	}
}

// Two messages of one order may come from one handler or from two, and the first
// may have to be tried again.
func TestMessagesOfAKeyArePublishedInTheirOrder(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	outbox.Workers = 3
	refused := false
	w.Refuse = func(m broker.Message) error {
		if string(m.Body) == "e1 first" && !refused {
			refused = true
			return broker.ErrNoQueue
		}
		return nil
	}
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		for _, step := range []string{"first", "second", "third"} {
			if err := outbox.Emit(ctx, broker.Message{Type: "step", Key: n.Order, Body: []byte(n.ID + " " + step)}); err != nil {
				return err
			}
		}
		return nil
	})
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.WantAnswer(testkit.Paid("e2"), http.StatusOK)
	s.Drain(7)
	w.Want(t, "step o1 e1 first", "step o1 e1 second", "step o1 e1 third", "step o1 e2 first", "step o1 e2 second", "step o1 e2 third")
}

// The second transaction begins first, and waits for the order's row: what it
// emits is later all the same.
func TestMessagesHaveTheOrderOfCommitsThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	s.Exec(`create table orders (id text primary key); insert into orders values ('o1')`)
	emit := func(tx pgx.Tx, body string) error {
		if _, err := tx.Exec(t.Context(), `select from orders where id = 'o1' for update`); err != nil {
			return err
		}
		return outbox.EmitTx(t.Context(), tx, broker.Message{Type: "step", Key: "o1", Body: []byte(body)})
	}
	second, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Exec(t.Context(), `select now()`); err != nil {
		t.Fatal(err)
	}
	first, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := emit(first, "first"); err != nil {
		t.Fatal(err)
	}
	emitted := make(chan error)
	go func() { emitted <- emit(second, "second") }()
	s.Until(testkit.Blocked)
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-emitted, second.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.Drain(2)
	w.Want(t, "step o1 first", "step o1 second")
}

func TestMessageThatTheBrokerRefusesIsParkedAndRequeued(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{Refuse: func(broker.Message) error { return broker.ErrTooLarge }}
	outbox := newOutbox(s, w)
	outbox.MaxAttempts = 3
	if err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		return outbox.EmitTx(t.Context(), tx, broker.Message{Type: "order.paid", Body: []byte("b")})
	}); err != nil {
		t.Fatal(err)
	}
	s.Drain(3)
	if stats, err := outbox.Stats(t.Context()); stats.Parked.Events != 1 || err != nil {
		t.Fatal(stats, err)
	}
	w.Refuse = nil
	s.WorkersElsewhere("shop")
	if n, err := testkit.Acted(t.Context(), "the limit was raised")(operator.New(outbox, "ana").PlanRequeue(t.Context(), idem.Filter{})); n != 1 || err != nil {
		t.Error(n, err)
	}
	s.Drain(1)
	w.Want(t, "order.paid  b")
}

func TestMessageWithAnIDThatWasEmittedBeforeIsNotEmittedAgain(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		m := paidMessage(n)
		m.ID = "paid-" + n.Order // whichever event says so first
		return outbox.Emit(ctx, m)
	})
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.WantAnswer(testkit.Paid("e2"), http.StatusOK)
	s.Drain(1)
	s.WantAnswer(testkit.Paid("e3"), http.StatusOK)
	s.Drain(0)
	w.Want(t, "order.paid o1 e1")
}

func TestMessageThatCannotBeStoredFailsItsHandler(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	outbox := newOutbox(s, &testkit.Broker{})
	for why, m := range map[string]broker.Message{
		"no type":       {Body: []byte("b")},
		"a long key":    {Type: "t", Key: strings.Repeat("k", 256)},
		"an id of NUL":  {Type: "t", ID: "\x00"},
		"a broken type": {Type: "\xff"},
	} {
		err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error { return outbox.EmitTx(t.Context(), tx, m) })
		if err == nil || !strings.HasPrefix(err.Error(), "outbox: ") {
			t.Errorf("%s: EmitTx = %v", why, err)
		}
	}
	s.On(func(ctx context.Context, _ pgx.Tx, n *testkit.Note) error { return outbox.Emit(ctx, broker.Message{}) })
	s.WantAnswer(testkit.Paid("e1"), http.StatusServiceUnavailable)
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "EmitTx") {
			t.Errorf("Emit outside of a handler: %v", r)
		}
	}()
	_ = outbox.Emit(t.Context(), broker.Message{Type: "t"})
}

func TestOutboxReceivesNothing(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	w := httptest.NewRecorder()
	newOutbox(s, &testkit.Broker{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(testkit.Paid("e1"))))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("a stranger's message is answered %d %s", w.Code, w.Body)
	}
	if n := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_events`); n != 0 {
		t.Error("it is stored")
	}
}

// A console and DryReplay run what is stored: consumers must not hear of it.
func TestDryRunOfAMessageDoesNotPublishIt(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{Refuse: func(broker.Message) error { return idem.NoRetry(errors.New("no such topic")) }}
	outbox := newOutbox(s, w)
	s.On(func(ctx context.Context, _ pgx.Tx, n *testkit.Note) error { return outbox.Emit(ctx, paidMessage(n)) })
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.Drain(1)
	w.Refuse = nil
	sum, err := testkit.Replayed(t.Context(), "")(operator.New(outbox, "ana").PlanDryReplay(t.Context(), idem.Filter{}))
	if diff := cmp.Diff(idem.Replayed{Done: 1}, sum); diff != "" || err != nil {
		t.Error(diff, err)
	}
	w.Want(t)
}

// Handlers write bodies into buffers that they use again.
func TestMessageHasTheBodyThatItWasEmittedWith(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	s.On(func(ctx context.Context, _ pgx.Tx, _ *testkit.Note) error {
		buffer := make([]byte, 0, 10)
		for _, text := range []string{"first", "again"} {
			if err := outbox.Emit(ctx, broker.Message{Type: "step", Key: "o1", Body: append(buffer, text...)}); err != nil {
				return err
			}
		}
		return nil
	})
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.Drain(2)
	w.Want(t, "step o1 first", "step o1 again")
}

// A goroutine that the handler did not wait for must not take a message for
// emitted that nobody will publish.
func TestMessageAfterTheHandlerHasReturnedIsRefused(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	committed, said := make(chan struct{}), make(chan error, 1)
	s.On(func(ctx context.Context, _ pgx.Tx, n *testkit.Note) error {
		go func() {
			<-committed
			said <- outbox.Emit(ctx, paidMessage(n))
		}()
		return nil
	})
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	close(committed)
	if err := <-said; err == nil || !strings.Contains(err.Error(), "the handler has returned") {
		t.Error("Emit after the handler returned:", err)
	}
	s.Drain(0)
	w.Want(t)
}

// A tracer may look at what handlers may look at.
func TestTracerMayUseTheHandlersContextForACarrier(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	outbox.Tracer = carrying(func(ctx context.Context) string {
		idem.ExecAtCommit(ctx, `select 1`)
		return "carried"
	})
	s.On(func(ctx context.Context, _ pgx.Tx, n *testkit.Note) error { return outbox.Emit(ctx, paidMessage(n)) })
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.Drain(1)
	w.Want(t, "order.paid o1 e1")
}

// Postgres may have the handler run again: what the first run emitted went with its
// transaction.
func TestMessageOfARunThatPostgresRefusedIsNotPublished(t *testing.T) {
	t.Parallel()
	s, w := testkit.NewShop(t), &testkit.Broker{}
	outbox := newOutbox(s, w)
	runs := 0
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		runs++
		if err := outbox.Emit(ctx, broker.Message{Type: "run", Key: n.Order, Body: fmt.Append(nil, runs)}); err != nil {
			return err
		}
		if runs == 1 {
			_, err := tx.Exec(ctx, `do $$ begin raise exception using errcode = '40001'; end $$`)
			return err
		}
		return nil
	})
	s.WantAnswer(testkit.Paid("e1"), http.StatusOK)
	s.Drain(1)
	w.Want(t, "run o1 2")
}

// newOutbox is an outbox that tries again at once.
func newOutbox(s *testkit.Shop, p broker.Publisher) *outbox.Outbox {
	o := outbox.New(s.Pool, "shop", p)
	o.Backoff = func(int) time.Duration { return 0 }
	o.Poll, o.Logger, o.Observe = 10*time.Millisecond, s.Logger(), s.Observe
	s.Inbox = o.Inbox // what the harness drains
	return o
}

func paidMessage(n *testkit.Note) broker.Message {
	return broker.Message{Type: "order.paid", Key: n.Order, Body: []byte(n.ID)}
}

// carrying is a tracer that has carriers only.
type carrying func(context.Context) string

func (carrying) Start(ctx context.Context, _ idem.Span) (context.Context, func(idem.Observation)) {
	return ctx, func(idem.Observation) {}
}

func (c carrying) Carrier(ctx context.Context) string { return c(ctx) }
