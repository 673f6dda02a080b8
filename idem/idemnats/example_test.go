package idemnats_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemnats"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/relay"
)

const (
	token  = "a token of the shop, 32 characters"
	secret = "0123456789abcdef0123456789abcdef" // of the relay, from openssl rand -hex 32
)

// A relay publishes deliveries to a stream. A consumer, here in the same program, passes
// them to an inbox. Its workers handle them.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	js, pool, closeAll := startBoth(ctx)
	defer closeAll()

	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "webhooks", Subjects: []string{"webhooks"}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, AllowAtomicPublish: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "inbox", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1,
		MaxAckPending: 1, // one message at a time keeps the order; partitions do, too
	})
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := idemnats.NewPublisher(js, stream, "webhooks")
	if err != nil {
		log.Fatal(err)
	}

	consuming, stopConsuming := context.WithCancel(ctx)
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		idem.AfterCommit(ctx, func(context.Context) {
			fmt.Println("received", e.Payment.Value)
			stopConsuming()
		})
		return nil
	})
	receiver, inbox := relay.New(events, publisher, secret), idem.NewInbox(pool, events)
	working := make(chan error, 1)
	go func() { working <- inbox.Run(consuming) }()

	answer := httptest.NewRecorder()
	receiver.ServeHTTP(answer, asaastest.Request("/webhooks/asaas", token, asaastest.Event("PAYMENT_RECEIVED")))
	fmt.Println("answered", answer.Code)

	err = idemnats.Consume(consuming, consumer, relay.To(inbox, secret))
	fmt.Println("stopped", err, <-working)
	// Output:
	// answered 200
	// received 129.90
	// stopped <nil> <nil>
}

// startBoth starts a NATS server and a Postgres, which a program has already.
func startBoth(ctx context.Context) (js jetstream.JetStream, pool *pgxpool.Pool, closeAll func()) {
	folder, err := os.MkdirTemp("", "idemnats")
	if err != nil {
		log.Fatal(err)
	}
	broker, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: folder, SyncAlways: true, NoLog: true, NoSigs: true})
	if err != nil {
		log.Fatal(err)
	}
	broker.Start()
	nc, err := nats.Connect(broker.ClientURL(), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
	if err != nil {
		log.Fatal(err)
	}
	if js, err = jetstream.New(nc); err != nil {
		log.Fatal(err)
	}
	postgres, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if pool, err = pgxpool.New(ctx, postgres.URL()); err != nil {
		log.Fatal(err)
	}
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	return js, pool, func() {
		pool.Close()
		postgres.Close()
		nc.Close()
		broker.Shutdown()
		broker.WaitForShutdown()
		os.RemoveAll(folder)
	}
}
