package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// store sells, and books what Asaas says was paid. Its account is at a fake Asaas.
type store struct {
	pool    *pgxpool.Pool
	first   *idem.Inbox
	asaas   *asaastest.Fake
	webhook string
	broken  atomic.Bool
	orders  int
}

var errBroken = errors.New("a mistake")

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{pool: idemtest.Pool(t), asaas: asaastest.New()}
	t.Cleanup(s.asaas.Close)
	if err := idem.Migrate(t.Context(), s.pool); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), `create table orders (charge text primary key, paid int not null default 0)`); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(webhookToken)
	events.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil }) // sound all the time
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		if s.broken.Load() {
			return errBroken
		}
		_, err := tx.Exec(ctx, `update orders set paid = paid + 1 where charge = $1`, e.Payment.ID)
		return err
	})
	s.first = idem.NewInbox(s.pool, events)
	s.first.WorkFirst = true
	s.first.Logger = slog.New(slog.DiscardHandler)
	s.webhook = s.asaas.AddWebhook(asaastest.Webhook{
		Handler: s.first, Token: webhookToken, Events: []asaas.EventType{asaas.EventPaymentConfirmed, asaas.EventPaymentReceived},
	})
	return s
}

// charge is an id as Asaas makes them.
func charge(n int) string { return fmt.Sprintf("pay_1_a1B2c3D4e5F%03d", n) }

// sell has customers order and pay.
func (s *store) sell(t *testing.T, orders int) {
	t.Helper()
	for range orders {
		s.orders++
		if _, err := s.pool.Exec(t.Context(), `insert into orders values ($1)`, charge(s.orders)); err != nil {
			t.Fatal(err)
		}
		s.asaas.Emit(asaastest.Event(asaas.EventPaymentReceived, asaastest.Set("payment.id", charge(s.orders))))
	}
	s.asaas.Settle()
}

// park has customers pay whose events are stored and parked.
func (s *store) park(t *testing.T, orders int) {
	t.Helper()
	s.first.WorkFirst, s.first.MaxAttempts = false, 1
	for range orders {
		s.orders++
		if _, err := s.pool.Exec(t.Context(), `insert into orders values ($1)`, charge(s.orders)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.first.Accept(t.Context(), asaas.Identify(asaastest.Event(asaas.EventPaymentReceived, asaastest.Set("payment.id", charge(s.orders))))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.first.WorkFirst = true
}

// unpaid counts the orders that are not paid exactly once.
func (s *store) unpaid(t *testing.T) (n int) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), `select count(*) from orders where paid <> 1`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// queue is the state of the queue.
func (s *store) queue() string {
	w := s.asaas.Webhook(s.webhook)
	return fmt.Sprintf("%d penalized, %d pending, stopped %t", w.Penalized, w.Pending, w.Interrupted)
}

// recover runs Recover to its end, with what it says.
func (s *store) recover(t *testing.T) (said []string, err error) {
	t.Helper()
	client := s.asaas.Client()
	client.Try = func(context.Context, idem.StoredEvent) bool { return true }
	for progress, err := range asaas.Recover(t.Context(), client, s.webhook, webhookToken, s.first) {
		if err != nil {
			return said, err
		}
		if progress.Step != asaas.RecoveryWatching {
			line, _, _ := strings.Cut(progress.String(), ", PAYMENT_RECEIVED evt_")
			said = append(said, line)
		}
	}
	return said, nil
}

// A handler is broken: events are parked, and those that cannot be stored get the queue a penalty. After the fix
// every order is paid once.
func TestAfterAnOutageEveryOrderIsPaidOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason  string
		parked  int
		failed  int // deliveries that are not stored
		restore []string
	}{
		{"every event is parked, and Asaas holds nothing up", 3, 0, []string{
			"nothing is held up at Asaas, and nothing was changed there",
			"the way is proved, and the handlers passed with the oldest event that failed",
			"replayed: 3 done, 0 failed again, 0 without handler",
			"nothing is owed of what was delivered: no event is parked, fails, or waits for another one",
		}},
		{"some are parked, and others wait in a queue with a penalty", 6, 2, []string{
			"the way is proved, and the handlers passed with the oldest event that failed",
			"the penalty is removed",
			"recovered: Asaas counts no failures any more",
			"replayed: 6 done, 0 failed again, 0 without handler",
			"nothing is owed of what was delivered: no event is parked, fails, or waits for another one",
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.sell(t, 2)
			if s.unpaid(t) != 0 {
				t.Fatal("the shop does not work")
			}
			s.broken.Store(true)
			s.park(t, tt.parked)
			s.sell(t, tt.failed)
			s.asaas.Advance(time.Hour)

			before := s.queue()
			if said, err := s.recover(t); err == nil || !strings.Contains(err.Error(), "nothing was changed: the handlers fail with PAYMENT_RECEIVED evt_") {
				t.Errorf("it recovers while the handler fails: %v, %v", said, err)
			}
			if diff := cmp.Diff(before, s.queue()); diff != "" || s.unpaid(t) != tt.parked+tt.failed {
				t.Errorf("something was changed: %d orders are not paid (-want +got):\n%s", s.unpaid(t), diff)
			}

			s.broken.Store(false)
			said, err := s.recover(t)
			if diff := cmp.Diff(tt.restore, said); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if n := s.unpaid(t); n != 0 || s.asaas.Webhook(s.webhook).Pending != 0 {
				t.Errorf("%d orders are not paid once, %d events wait", n, s.asaas.Webhook(s.webhook).Pending)
			}
			s.asaas.Advance(15 * 24 * time.Hour)
			if n := s.unpaid(t); n != 0 {
				t.Errorf("two weeks later %d orders are not paid once", n)
			}
		})
	}
}

func TestWhatFailsAgainIsOwedStill(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.broken.Store(true)
	s.park(t, 2)
	var last asaas.RecoveryProgress
	for p, err := range asaas.Recover(t.Context(), s.asaas.Client(), s.webhook, webhookToken, s.first) {
		if err != nil {
			t.Fatal(err)
		}
		last = p
	}
	if says := "still owed: 2 PAYMENT_RECEIVED parked: see their errors, fix those, and replay them"; last.String() != says {
		t.Errorf("it ends with %q, want %q", last, says)
	}
	owed, err := asaas.ListOwed(t.Context(), s.first)
	if diff := cmp.Diff(last.Owed, owed); diff != "" || err != nil || len(owed) != 1 || owed[0].Oldest.IsZero() {
		t.Errorf("%+v, %v (-want +got):\n%s", owed, err, diff)
	}
}

func TestWhatIsOwedReadsAsALine(t *testing.T) {
	t.Parallel()
	for want, owed := range map[string]asaas.Owed{
		"1 SENT\uFFFD BY\uFFFD A STRANGER parked": {Type: "SENT\x1b\nBY\u202e A STRANGER", Parked: 1},
		"3 PAYMENT_RECEIVED parked":               {Type: asaas.EventPaymentReceived, Parked: 3},
		"2 PAYMENT_RECEIVED pending":              {Type: asaas.EventPaymentReceived, Pending: 2},
		"8 PAYMENT_RECEIVED being tried again, 2 waiting for an earlier one, the oldest for 43 min": {
			Type: asaas.EventPaymentReceived, Failing: 8, Waiting: 2, Oldest: time.Now().Add(-43*time.Minute - time.Second),
		},
	} {
		if got := owed.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An inbox has answered 200, so that Asaas holds nothing up.
func TestWhatWorkersTryAgainIsOwedAndSoIsWhatWaitsBehindIt(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	events := asaas.NewDispatcher(webhookToken)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errBroken })
	events.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	inbox := idem.NewInbox(s.pool, events)
	inbox.Backoff = func(int) time.Duration { return time.Hour }
	inbox.Logger = nil
	for n, eventType := range []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentConfirmed} {
		body := asaastest.Event(eventType, asaastest.Set("payment.id", charge(1)), asaastest.Set("dateCreated", fmt.Sprintf("2026-11-20 10:00:0%d", n)))
		if o, err := inbox.Accept(t.Context(), asaas.Identify(body)); o != idem.Pending || err != nil {
			t.Fatal(o, err)
		}
	}
	if owed, err := asaas.ListOwed(t.Context(), inbox); len(owed) != 0 || err != nil {
		t.Errorf("before any was tried %v is owed, %v", owed, err)
	}
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	owed, err := asaas.ListOwed(t.Context(), inbox)
	want := []string{"1 PAYMENT_CONFIRMED waiting for an earlier one", "1 PAYMENT_RECEIVED being tried again, the oldest for 0 min"}
	var got []string
	for _, o := range owed {
		got = append(got, o.String())
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestADatabaseThatIsUnavailableEndsARecoveryBeforeAnythingIsChanged(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.broken.Store(true)
	s.sell(t, 1)
	if _, err := s.pool.Exec(t.Context(), `drop table idem_payloads cascade`); err != nil {
		t.Fatal(err)
	}
	if said, err := s.recover(t); err == nil || said != nil || !strings.Contains(err.Error(), "nothing was changed: what the application owes is not known: ") {
		t.Errorf("%v: %v", said, err)
	}
}

// As a person does it who has no handlers at hand.
func TestAWebhookOfAHandlerNeedsNoDNS(t *testing.T) {
	t.Parallel()
	fake := asaastest.New()
	defer fake.Close()
	var got []string
	answering := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(idem.DryRunHeader) != "" {
				got = append(got, name)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"received":false,"dry_run":"done"}`)
		})
	}
	types := []asaas.EventType{asaas.EventPaymentReceived}
	fake.AddWebhook(asaastest.Webhook{Handler: answering("one"), Token: webhookToken, Events: types})
	two := fake.AddWebhook(asaastest.Webhook{Handler: answering("two"), Token: webhookToken, Events: types})
	fake.Emit(asaastest.Event(asaas.EventPaymentReceived))
	fake.Settle()
	for progress, err := range asaas.Recover(t.Context(), fake.Client(), two, webhookToken, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if progress.Step == asaas.RecoveryPenaltyRemoved {
			break
		}
	}
	if diff := cmp.Diff([]string{"two"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALongSilenceIsToldWithWhatIsOwed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.sell(t, 1)
	if _, err := s.pool.Exec(t.Context(), `update idem_events set received_at = now() - interval '15 days 1 hour'`); err != nil {
		t.Fatal(err)
	}
	s.asaas.InjectAPI(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		fmt.Fprintf(w, `{"id":%q,"interrupted":true,"penalizedRequestsCount":15,"events":["PAYMENT_RECEIVED"],"url":%q}`, s.webhook, s.asaas.Webhook(s.webhook).URL)
	})
	said, err := s.recover(t)
	if err != nil || len(said) == 0 || !strings.Contains(said[len(said)-1], "nothing is owed of what was delivered: ") ||
		!strings.Contains(said[len(said)-1], "nothing was delivered for 15 days, since ") {
		t.Errorf("%q, %v", said, err)
	}
}
