package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const secret = "the secret"

// orders are the orders of a test: order-1 of 99.00, and order-2 of 25.00.
const orders = `insert into orders (id, total) values ('order-1', 9900), ('order-2', 2500)`

// tables makes the tables of the guide.
func tables(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/first-event-zeltapay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, _ := strings.Cut(string(guide), "```sql\n")
	sql, _, _ = strings.Cut(sql, "insert into") // the guide's own order
	if _, err := pool.Exec(t.Context(), sql+orders); err != nil {
		t.Fatal(err)
	}
}

func source(now func() time.Time) *zeltapay.Dispatcher {
	events := zeltapay.NewDispatcher(secret)
	events.Now = now
	events.OnPaymentSuccess(paid)
	return events
}

// flat and nested make the event of a payment, in either layout.
func flat(link, transaction, order string, cents int, changes ...zeltapaytest.Change) []byte {
	return zeltapaytest.Flat.Event("payment.success", append([]zeltapaytest.Change{
		zeltapaytest.Set("paymentLinkId", link), zeltapaytest.Set("transaction.externalPaymentId", transaction),
		zeltapaytest.Set("metadata.orderId", order), zeltapaytest.Set("transaction.amount", cents),
	}, changes...)...)
}

func nested(link, transaction, order string, cents int) []byte {
	return zeltapaytest.Nested.Event("payment.success",
		zeltapaytest.Set("paymentLink.id", link), zeltapaytest.Set("transaction.id", transaction),
		zeltapaytest.Set("paymentLink.metadata.orderId", order), zeltapaytest.Set("paymentLink.amount", cents))
}

// wantOrders compares the orders with "id paid of total", and " shipped" behind one that is.
func wantOrders(ctx context.Context, pool *pgxpool.Pool, want ...string) error {
	rows, _ := pool.Query(ctx, `select format('%s %s of %s%s', id, paid, total, case when s.order_id is not null then ' shipped' end)
		from orders left join shipments s on order_id = id order by id`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff(want, got); err == nil && diff != "" {
		err = fmt.Errorf("the orders are %s", diff)
	}
	return err
}

// Every order of the events, each twice, once more on the next day.
func TestAnOrderIsTheSumOfItsPaymentsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		events [][]byte
		want   []string
	}{
		{
			"a wrong amount does not pay an order",
			[][]byte{flat("pl_1", "t1", "order-1", 100)},
			[]string{"order-1 100 of 9900", "order-2 0 of 2500"},
		},
		{
			"of a link's amount and the amount that was paid the second counts",
			[][]byte{flat("pl_1", "t1", "order-1", 100), nested("pl_1", "n1", "order-1", 5000), flat("pl_2", "t2", "order-1", 200)},
			[]string{"order-1 300 of 9900", "order-2 0 of 2500"},
		},
		{
			"two links pay an order together",
			[][]byte{flat("pl_1", "t1", "order-1", 5000), nested("pl_2", "n1", "order-1", 4900)},
			[]string{"order-1 9900 of 9900 shipped", "order-2 0 of 2500"},
		},
		{
			"a second payment of a link is counted, and ships nothing a second time",
			[][]byte{flat("pl_1", "t1", "order-1", 9900), flat("pl_1", "t2", "order-1", 9900), flat("pl_3", "t3", "order-2", 2500)},
			[]string{"order-1 19800 of 9900 shipped", "order-2 2500 of 2500 shipped"},
		},
		{
			"a payment that comes in both layouts is one, and each of two is",
			[][]byte{
				flat("pl_1", "t1", "order-1", 9900), nested("pl_1", "n1", "order-1", 9900),
				nested("pl_2", "n2", "order-2", 2500), nested("pl_2", "n3", "order-2", 2500),
			},
			[]string{"order-1 9900 of 9900 shipped", "order-2 5000 of 2500 shipped"},
		},
		{
			"a transaction under another id of its event is the same payment",
			[][]byte{flat("pl_1", "t1", "order-1", 100), flat("pl_1", "t1", "order-1", 100), flat("pl_1", "t2", "order-1", 9800)},
			[]string{"order-1 9900 of 9900 shipped", "order-2 0 of 2500"},
		},
		{
			"payments without the id of a transaction are told apart by their events",
			[][]byte{
				flat("pl_1", "", "order-1", 100, zeltapaytest.Delete("transaction.externalPaymentId")),
				flat("pl_1", "", "order-1", 200, zeltapaytest.Delete("transaction.externalPaymentId")),
			},
			[]string{"order-1 300 of 9900", "order-2 0 of 2500"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var deliveries []*http.Request
			for _, body := range c.events {
				deliveries = append(deliveries, zeltapaytest.Request("/webhooks/zeltapay", secret, body))
			}
			idemtest.AnyOrder(t, func(pool *pgxpool.Pool) idem.Source {
				tables(t, pool)
				return source(nil)
			}, deliveries, func(ctx context.Context, pool *pgxpool.Pool) error { return wantOrders(ctx, pool, c.want...) })
		})
	}
}

// shop is the program with a database of its own, whose clock is a fake Zelta Pay's.
type shop struct {
	*zeltapaytest.Fake
	inbox *idem.Inbox
	pool  *pgxpool.Pool
	daily *daily
}

func newShop(t *testing.T) *shop {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	tables(t, pool)
	fake := zeltapaytest.New()
	t.Cleanup(fake.Close)
	fake.Start = time.Now().AddDate(0, 0, -40)
	inbox := idem.NewInbox(pool, source(fake.Now))
	inbox.Logger = slog.New(slog.DiscardHandler)
	return &shop{Fake: fake, inbox: inbox, pool: pool, daily: &daily{fake.Client(), pool}}
}

func (s *shop) want(t *testing.T, want ...string) {
	t.Helper()
	if err := wantOrders(t.Context(), s.pool, want...); err != nil {
		t.Error(err)
	}
}

func (s *shop) read(t *testing.T) {
	t.Helper()
	if err := s.daily.read(t.Context()); err != nil {
		t.Error(err)
	}
}

func (s *shop) drain(t *testing.T) {
	t.Helper()
	if err := s.inbox.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAPaymentThatIsNotOursIsParked(t *testing.T) {
	t.Parallel()
	for why, body := range map[string][]byte{
		"no order, as of a link of the dashboard": flat("pl_1", "t1", "order-1", 9900, zeltapaytest.Delete("metadata")),
		"another currency":                        flat("pl_1", "t1", "order-1", 9900, zeltapaytest.Set("transaction.currency", "JPY")),
		"no link":                                 flat("pl_1", "t1", "order-1", 9900, zeltapaytest.Delete("paymentLinkId")),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: s.inbox})
			s.Emit(body)
			s.Settle()
			s.drain(t)
			s.want(t, "order-1 0 of 9900", "order-2 0 of 2500")
			var state string
			if err := s.pool.QueryRow(t.Context(), `select state from idem_event_log`).Scan(&state); err != nil || state != "parked" {
				t.Errorf("the event is %q, %v", state, err)
			}
		})
	}
}

// Zelta Pay's tries end in eight minutes, and its dead-letter queue in 30 days.
func TestTheDailyReadingBooksWhatLeftTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})})
	at := zeltapaytest.Set("transaction.paidAt", s.Now().UTC().Format(time.RFC3339))
	s.Emit(flat("pl_1", "t1", "order-1", 9900, at), flat("pl_2", "t2", "order-2", 2500, at))
	s.Advance(8 * time.Minute)
	if n := len(s.DeadLetters()); n != 2 {
		t.Errorf("%d events are in the dead-letter queue after eight minutes", n)
	}
	s.Advance(31 * 24 * time.Hour)
	if n := len(s.DeadLetters()); n != 0 {
		t.Errorf("%d events are in the dead-letter queue after 31 days", n)
	}
	s.read(t)
	s.read(t) // the next day's
	s.want(t, "order-1 9900 of 9900 shipped", "order-2 2500 of 2500 shipped")
}

func TestAnEventAfterTheReadingCountsInsteadOfIt(t *testing.T) {
	t.Parallel()
	for _, reads := range []string{"before", "after", "both"} {
		t.Run(reads, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			list := []byte(`{"success":true,"data":[{"id":"pl_1","status":"completed","amount":9900,"metadata":{"orderId":"order-1"}}]}`)
			s.daily.client.Transport = pages{list}
			if reads != "after" {
				s.read(t)
				s.want(t, "order-1 9900 of 9900 shipped", "order-2 0 of 2500")
			}
			s.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: s.inbox})
			s.Emit(flat("pl_1", "t1", "order-1", 100), flat("pl_1", "t2", "order-1", 200))
			s.Settle()
			s.drain(t)
			if reads != "before" {
				s.read(t)
			}
			var paid int
			if err := s.pool.QueryRow(t.Context(), `select paid from orders where id = 'order-1'`).Scan(&paid); err != nil || paid != 300 {
				t.Errorf("the order has %d, %v", paid, err)
			}
		})
	}
}

// pages is a transport that answers with a page and then with empty ones.
type pages struct{ first []byte }

func (p pages) RoundTrip(r *http.Request) (*http.Response, error) {
	body := p.first
	if r.URL.Query().Get("off") != "0" {
		body = []byte(`{"success":true,"data":[]}`)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

func TestTheReadingLeavesToTheEventWhatWasPaidJustNow(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Emit(flat("pl_1", "t1", "order-1", 9900, zeltapaytest.Set("transaction.paidAt", time.Now().UTC().Format(time.RFC3339))))
	s.read(t)
	s.want(t, "order-1 0 of 9900", "order-2 0 of 2500")
}

func TestTheReadingGoesOnBehindALinkThatIsNotOurs(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Emit(flat("pl_1", "t1", "order-1", 9900), flat("pl_2", "t2", "unknown", 100),
		flat("pl_3", "t3", "order-1", 100, zeltapaytest.Set("transaction.isTest", true)))
	s.read(t)
	s.want(t, "order-1 9900 of 9900 shipped", "order-2 0 of 2500")
}

func TestAReadingThatPostgresInterruptsIsAnError(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Emit(flat("pl_1", "t1", "order-1", 9900))
	s.pool.Close()
	if err := s.daily.read(t.Context()); err == nil {
		t.Error("the reading ended well")
	}
}

func TestTwoPaymentsAtTheSameTimeAreBothInTheSum(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(context.Background())
	if err := (payment{"order-1", "pl_1", "flat", "t1", 100}).book(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Rollback(context.Background())
	booked := make(chan error, 1)
	go func() { booked <- payment{"order-1", "pl_2", "flat", "t2", 200}.book(t.Context(), second) }()
	for waits := false; !waits; { // for the first one
		if err := s.pool.QueryRow(t.Context(), `select cardinality(pg_blocking_pids($1)) > 0`, second.Conn().PgConn().PID()).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-booked; err != nil {
		t.Error(err)
	}
	if err := second.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	s.want(t, "order-1 300 of 9900", "order-2 0 of 2500")
}
