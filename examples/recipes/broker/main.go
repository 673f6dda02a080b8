// Broker is a shop with Kafka in front of its database and behind it:
//
//	Asaas → relay → topic webhooks → inbox → handler → outbox → topic orders → shipping
//
// The relay answers 200 once the brokers have an event, even while Postgres is down:
//
//	go run .
//
// The shop is in shop.go. Here Asaas, the brokers and a Postgres are of this process, so that it
// needs no set-up. With RabbitMQ or SQS only the calls of package idemkafka change.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal("broker: ", err)
	}
}

func run(ctx context.Context) (err error) {
	postgres, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Close()) }()
	return serve(ctx, postgres.URL(), func(account *asaastest.Fake, shipped <-chan string) {
		pay(account, "order-1", "order-2", "order-3")
		for range 3 {
			fmt.Println("shipping has heard that", <-shipped, "is paid")
		}
	})
}

// serve runs the shop until play returns.
func serve(ctx context.Context, database string, play func(account *asaastest.Fake, shipped <-chan string)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	brokers, err := kfake.NewCluster(kfake.SeedTopics(4, webhooks, orders), kfake.BrokerConfigs(map[string]string{"min.insync.replicas": "2"}))
	if err != nil {
		return err
	}
	defer brokers.Close()
	producer, err := kgo.NewClient(kgo.SeedBrokers(brokers.ListenAddrs()...))
	if err != nil {
		return err
	}
	defer producer.Close()
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := newShop(ctx, pool, producer, brokers.ListenAddrs())
	if err != nil {
		return err
	}
	// The charges are of another day than the table, and no other program has booked any: see package charges.
	if err := charges.Filled(ctx, pool, "", time.Time{}); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas", s.relay)
	account := asaastest.New()
	defer account.Close()
	account.AddWebhook(asaastest.Webhook{URL: "https://shop.example/webhooks/asaas", Token: token, Handler: mux})
	shipped := make(chan string)
	go func() {
		defer stop()
		play(account, shipped)
	}()
	shipping := consumer{brokers.ListenAddrs(), "shipping", orders, 1, ship(shipped)}
	return idem.Serve(ctx, &http.Server{Addr: "127.0.0.1:0", Handler: mux}, s.relay, s.store, s.inbox, s.outbox, shipping)
}

// ship returns the handler of another program: it takes each message of the shop once.
func ship(shipped chan<- string) broker.Handle {
	seen := make(map[string]bool) // a table, in a program that is started again
	return func(ctx context.Context, m broker.Message) error {
		if seen[m.ID] {
			return nil
		}
		select {
		case shipped <- m.Key:
			seen[m.ID] = true
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pay has the charges of orders paid, at Asaas, which delivers the first one twice.
func pay(account *asaastest.Fake, orders ...string) {
	account.Inject(asaastest.Duplicate)
	for _, order := range orders {
		account.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_"+order), asaastest.Set("payment.externalReference", order)))
	}
	account.Settle()
}
