package idemkafka_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker/idemkafka"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/idemtest"
)

const (
	token  = "7f0c1d9aa5f94f5e8f3b3c0b6d2e4a18" // of the account's webhook
	secret = "0f2b7c5a91d34e6688aa0b1c2d3e4f50" // openssl rand -hex 32 makes a longer one
)

// Deliveries go through a topic into an inbox.
func Example() {
	ctx := context.Background()
	cluster, err := kfake.NewCluster(kfake.SeedTopics(8, "webhooks")) // yours is a real one
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	seeds := kgo.SeedBrokers(cluster.ListenAddrs()...)
	server, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}

	done := make(chan string)
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		idem.AfterCommit(ctx, func(context.Context) { done <- string(e.Event) })
		return nil
	})

	// The relay, which needs no Postgres.
	producer, err := kgo.NewClient(seeds)
	if err != nil {
		log.Fatal(err)
	}
	defer producer.Close()
	publisher, err := idemkafka.NewPublisher(producer, "webhooks")
	if err != nil {
		log.Fatal(err)
	}
	receiver := relay.New(events, publisher, secret)

	// The consumer and the inbox, in the same program or in others.
	consumer, err := kgo.NewClient(
		seeds, kgo.ConsumerGroup("shop"), kgo.ConsumeTopics("webhooks"), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer consumer.Close()
	inbox := idem.NewInbox(pool, events)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- idemkafka.Consume(running, consumer, relay.To(inbox, secret)) }()
	go func() { ended <- inbox.Run(running) }()

	answer := httptest.NewRecorder()
	receiver.ServeHTTP(answer, asaastest.Request("/webhooks/asaas", token, asaastest.Event("PAYMENT_RECEIVED")))
	fmt.Println("answered:", answer.Code)
	fmt.Println("done:", <-done)
	stop()
	fmt.Println(<-ended, <-ended)
	// Output:
	// answered: 200
	// done: PAYMENT_RECEIVED
	// <nil> <nil>
}
