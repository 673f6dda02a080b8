package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// outageOfShop is an application whose handler is broken, with its queue at an
// Asaas of its own: an event has failed for an hour.
type outageOfShop struct {
	asaas   *asaastest.Fake
	client  *asaas.Client
	webhook string // its id
	inbox   *idem.Inbox
	broken  bool
	close   func()
}

func newShop(ctx context.Context) *outageOfShop {
	database, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, database.URL())
	if err != nil {
		log.Fatal(err)
	}
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	s := &outageOfShop{asaas: asaastest.New(), broken: true}
	events := asaas.NewDispatcher(webhookToken)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		if s.broken {
			return errors.New("a mistake")
		}
		return nil
	})
	s.inbox = idem.NewInbox(pool, events)
	s.inbox.Logger, s.inbox.MaxAttempts = slog.New(slog.DiscardHandler), 1
	if _, err := s.inbox.Accept(ctx, asaas.Identify(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_1"), asaastest.Set("payment.id", "pay_1_a1B2c3D4e5F6g7")))); err != nil {
		log.Fatal(err)
	}
	if err := s.inbox.Drain(ctx); err != nil { // and it is parked
		log.Fatal(err)
	}
	s.inbox.WorkFirst = true // and no workers run: a failure is answered 503
	s.webhook = s.asaas.AddWebhook(asaastest.Webhook{
		Handler: s.inbox, Token: webhookToken, Events: []asaas.EventType{asaas.EventPaymentReceived},
	})
	s.client = s.asaas.Client() // asaas.NewClient(asaas.Production, os.Getenv("ASAAS_API_KEY"))
	s.asaas.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_2"), asaastest.Set("payment.id", "pay_2_a1B2c3D4e5F6g7")))
	s.asaas.Advance(time.Hour)
	s.close = func() {
		s.asaas.Close()
		pool.Close()
		if err := database.Close(); err != nil {
			log.Fatal(err)
		}
	}
	return s
}

// A handler fails, and Asaas waits longer and longer between its attempts. The
// fix is deployed, and then:
func ExampleRecover() {
	ctx := context.Background()
	shop := newShop(ctx)
	defer shop.close()
	shop.broken = false
	shop.client.Try = func(_ context.Context, oldest idem.StoredEvent) bool {
		fmt.Println("try the handlers with the event of", oldest.Key) // ask a person
		return true
	}

	for progress, err := range asaas.Recover(ctx, shop.client, shop.webhook, webhookToken, shop.inbox) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(progress)
	}
	fmt.Println(shop.asaas.Webhook(shop.webhook).Pending, "events wait")
	// Output:
	// try the handlers with the event of pay_1_a1B2c3D4e5F6g7
	// the way is proved, and the handlers passed with the oldest event that failed, PAYMENT_RECEIVED evt_1 of pay_1_a1B2c3D4e5F6g7
	// the penalty is removed
	// watching: Asaas counts 0 failures
	// watching: Asaas counts 0 failures
	// watching: Asaas counts 0 failures
	// recovered: Asaas counts no failures any more
	// replayed: 1 done, 0 failed again, 0 without handler
	// nothing is owed of what was delivered: no event is parked, fails, or waits for another one
	// 0 events wait
}
