package zeltapaytest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// Twelve payments in both layouts, every fault, and a shop that is down for ten minutes: each event that Zelta Pay gives up is
// replayed days later, and each payment has happened once.
func TestEachPaymentHappensOnceWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	if _, err := pool.Exec(t.Context(), `create table payments (link_id text)`); err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: shop(pool, fake.Now, &down)})
	fake.Inject(
		zeltapaytest.Duplicate, zeltapaytest.Concurrent, zeltapaytest.Swap, zeltapaytest.LostAnswer,
		zeltapaytest.SlowBody, zeltapaytest.CutBody, zeltapaytest.WrongSecret, zeltapaytest.Stale,
		zeltapaytest.Concurrent|zeltapaytest.LostAnswer|zeltapaytest.Duplicate,
	)
	for i := range 12 {
		layout, path := zeltapaytest.Flat, "paymentLinkId"
		if i%2 == 1 {
			layout, path = zeltapaytest.Nested, "paymentLink.id"
		}
		fake.Emit(layout.Event("payment.success", zeltapaytest.Set(path, fmt.Sprintf("pl_%d", i))))
		if i == 9 {
			fake.Advance(time.Hour)
			same(t, "the one with the wrong secret is", 1, len(fake.DeadLetters()))
			down.Store(true)
		}
	}
	fake.Advance(10 * time.Minute)
	down.Store(false)
	fake.Advance(3 * day)
	same(t, "with those of the outage they are", 3, len(fake.DeadLetters()))
	fake.ReplayAll()
	fake.Settle()
	same(t, "after the replay they are", 0, len(fake.DeadLetters()))
	for _, sql := range []string{`select count(*) from payments`, `select count(distinct link_id) from payments`} {
		var n int
		if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil || n != 12 {
			t.Errorf("%s: %d, %v", sql, n, err)
		}
	}
}

func shop(pool *pgxpool.Pool, now func() time.Time, down *atomic.Bool) *idem.Inbox {
	events := zeltapay.NewDispatcher(secret)
	events.Now = now
	events.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
		if down.Load() {
			return fmt.Errorf("the shop is down")
		}
		_, err := tx.Exec(ctx, `insert into payments values ($1)`, e.LinkID())
		return err
	})
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	inbox.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return inbox
}
