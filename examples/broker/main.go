// Broker is a shop with Kafka in front of its database and behind it:
//
//	provider → relay.New → topic webhooks → relay.To → Inbox → handler
//	handler → Outbox.Emit → Postgres → outbox's workers → topic orders → shipping
//
// The provider delivers payments. Then the database crashes, and the provider still
// gets its 200. When the database is back, each order is paid once, and shipping has
// heard of each:
//
//	go run .
//
// It needs no set-up: the brokers are in this process, and it starts a Postgres of its
// own, which it can crash. The part that an application of yours needs is in shop.go. With
// RabbitMQ or SQS only its calls of package idemkafka change.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/internal/interrupt"
	"github.com/paghooks/paghooks/internal/postgres"
)

// longest is the time that all may take; it takes seconds.
const longest = 2 * time.Minute

func main() {
	ctx, out := interrupt.Context(os.Stdout)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := run(ctx, out, io.Discard); err != nil { // the warnings are about the crash, which is intended
		fmt.Fprintln(os.Stderr, "broker:", interrupt.Explain(ctx, err))
		os.Exit(1)
	}
}

func run(ctx context.Context, out, warnings io.Writer) (err error) {
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
	database := &postgres.Cluster{}
	if err := database.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	pool, err := pgxpool.New(ctx, database.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := newShop(ctx, pool, producer, brokers.ListenAddrs(), warnings)
	if err != nil {
		return err
	}
	return inBackground(ctx, func(ctx context.Context) error {
		return play(ctx, s, database, pool, out)
	}, s.receive, s.store)
}

// inBackground runs parts until play returns, or one of them does.
func inBackground(ctx context.Context, play func(context.Context) error, parts ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for n, part := range parts {
		running.Go(func() {
			defer stop()
			errs[n] = part(ctx)
		})
	}
	err := play(ctx)
	stop()
	running.Wait()
	return errors.Join(append(errs, err)...)
}

// each is the number of orders that are paid before the crash, and after it.
const each = 5

func play(ctx context.Context, s *shop, database *postgres.Cluster, pool *pgxpool.Pool, out io.Writer) error {
	shipped := make(chan string)
	ships := func(order string) error {
		select {
		case shipped <- order:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	shipping := func(ctx context.Context) error { return s.ship(ctx, ships) }
	return inBackground(ctx, func(ctx context.Context) error {
		p := provider{out: out}
		select {
		case address := <-s.address:
			p.url = "http://" + address + path
		case <-ctx.Done():
			return ctx.Err()
		}
		fmt.Fprintln(out, "Postgres is up.")
		if err := p.deliver(ctx, 1, each); err != nil {
			return err
		}
		if err := await(ctx, shipped, each, out); err != nil {
			return err
		}
		if err := database.Crash(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nPostgres is down.")
		if err := p.deliver(ctx, each+1, each); err != nil {
			return err
		}
		if err := database.Start(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nPostgres is back.")
		if err := await(ctx, shipped, each, out); err != nil {
			return err
		}
		return check(ctx, pool, out)
	}, shipping)
}

// await waits until shipping has heard of so many more orders.
func await(ctx context.Context, shipped <-chan string, count int, out io.Writer) error {
	for n := range count {
		select {
		case order := <-shipped:
			fmt.Fprintln(out, "shipping has heard that", order, "is paid")
		case <-ctx.Done():
			return fmt.Errorf("shipping has heard of %d orders of %d: %w", n, count, ctx.Err())
		}
	}
	return nil
}

// check wants each order to be paid once, and nothing else.
func check(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	var count, different int
	err := pool.QueryRow(ctx, `select count(*), count(distinct ord) from paid`).Scan(&count, &different)
	if err != nil {
		return err
	}
	if count != 2*each || different != 2*each {
		return fmt.Errorf("%d payments of %d orders are booked, want %d of as many", count, different, 2*each)
	}
	_, err = fmt.Fprintf(out, "\nEach of the %d orders is paid once, and shipping has heard of each.\n", 2*each)
	return err
}

// provider delivers as Asaas does.
type provider struct {
	url string
	out io.Writer
}

// deliver delivers payments of so many orders, each of them twice.
func (p provider) deliver(ctx context.Context, from, count int) error {
	for n := from; n < from+count; n++ {
		order := fmt.Sprintf("order-%02d", n)
		body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.externalReference", order))
		for range 2 {
			answer, err := http.DefaultClient.Do(asaastest.Request(p.url, token, body).WithContext(ctx))
			if err != nil {
				return err
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("the delivery of %s was answered %s", order, answer.Status)
			}
		}
		fmt.Fprintln(p.out, "the payment of", order, "was delivered twice, and answered with 200")
	}
	return nil
}
