package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/idemkafka"
	"github.com/paghooks/paghooks/idem/outbox"
	"github.com/paghooks/paghooks/idem/relay"
)

// Everybody can read these. An application takes its own from the environment.
const (
	token  = "broker-example-asaas-token"
	secret = "broker-example-relay-secret-0000000000"
)

const path = "/webhooks/asaas"

// The topics.
const (
	webhooks = "webhooks" // from the relay to the inbox
	orders   = "orders"   // from the shop to others
)

// shop is the application. Its three parts may be three programs.
type shop struct {
	seeds    []string
	relay    *relay.Relay
	inbox    *idem.Inbox
	outbox   *outbox.Outbox
	warnings *slog.Logger
	address  chan string // has where deliveries go, once the shop listens
}

// newShop wires the parts. producer is a client of the brokers at seeds.
func newShop(ctx context.Context, pool *pgxpool.Pool, producer *kgo.Client, seeds []string, warnings io.Writer) (*shop, error) {
	if err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, `create table if not exists paid (event_id text primary key, ord text not null, amount numeric not null)`); err != nil {
		return nil, err
	}
	toWebhooks, err := idemkafka.NewPublisher(producer, webhooks)
	if err != nil {
		return nil, err
	}
	toOrders, err := idemkafka.NewPublisher(producer, orders)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(toWebhooks.Check(ctx), toOrders.Check(ctx)); err != nil {
		return nil, err // the brokers may lose messages that they confirm; you may rather log it
	}
	s := &shop{seeds: seeds, address: make(chan string, 1)}
	s.warnings = slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(s.pay)
	s.relay = relay.New(events, toWebhooks, secret)
	s.inbox = idem.NewInbox(pool, events)
	s.outbox = outbox.New(pool, "shop", toOrders)
	s.relay.Logger, s.inbox.Logger, s.outbox.Logger = s.warnings, s.warnings, s.warnings
	return s, nil
}

// pay books a payment, and emits the message that the order is paid. Both happen, or
// neither.
func (s *shop) pay(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	order := e.Payment.ExternalReference.Or("")
	if order == "" {
		return nil // a charge made by hand in Asaas, not one of the shop's
	}
	if _, err := tx.Exec(ctx, `insert into paid (event_id, ord, amount) values ($1, $2, $3) on conflict do nothing`, e.ID, order, e.Payment.Value); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"order": order, "amount": e.Payment.Value})
	if err != nil {
		return err
	}
	return s.outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: order, Body: body})
}

// receive takes deliveries to the brokers, for which it needs no Postgres. The workers of
// the inbox and the outbox need it; they may run in another program.
func (s *shop) receive(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("POST "+path, s.relay)
	server := &http.Server{Addr: "127.0.0.1:0", Handler: mux}
	server.BaseContext = func(l net.Listener) context.Context {
		s.address <- l.Addr().String()
		return context.Background()
	}
	return idem.Serve(ctx, server, s.relay, s.inbox, s.outbox)
}

// store takes events from the brokers into the inbox.
func (s *shop) store(ctx context.Context) error {
	return s.consume(ctx, "shop", webhooks, 16, relay.To(s.inbox, secret))
}

// ship is another team's program: it reads the shop's messages, and calls ships for each
// order once.
func (s *shop) ship(ctx context.Context, ships func(order string) error) error {
	seen := make(map[string]bool) // a real one has them in its database, as an idem.Inbox does
	return s.consume(ctx, "shipping", orders, 1, func(_ context.Context, m broker.Message) error {
		if m.Type != "order.paid" || seen[m.ID] {
			return nil
		}
		if err := ships(m.Key); err != nil {
			return err
		}
		seen[m.ID] = true
		return nil
	})
}

// consume gives the messages of a topic to so many handlers at once.
func (s *shop) consume(ctx context.Context, group, topic string, handlers int, handle broker.Handle) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.seeds...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	settings := broker.Consumer{Handlers: handlers, Logger: s.warnings}
	return idemkafka.ConsumeWith(ctx, settings, client, handle)
}
