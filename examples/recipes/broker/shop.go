package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/idemkafka"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/broker/relay"
)

// An application reads its own from the environment.
const (
	token  = "broker-example-asaas-token"
	secret = "broker-example-relay-secret-0000000000" // the relay signs with it, so that only its messages are taken
)

const (
	webhooks = "webhooks" // the topic from the relay to the inbox
	orders   = "orders"   // the topic from the outbox to others
)

// shop is the application. Its parts may run in several programs: only the relay does without Postgres.
type shop struct {
	relay  *relay.Relay   // receives from Asaas
	store  consumer       // brings events from the brokers into the inbox
	inbox  *idem.Inbox    // runs the handler
	outbox *outbox.Outbox // publishes the messages that the handler emits
}

// newShop wires the parts. producer is a client of the brokers at seeds.
func newShop(ctx context.Context, pool *pgxpool.Pool, producer *kgo.Client, seeds []string) (*shop, error) {
	if err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	if err := charges.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	toWebhooks, err1 := idemkafka.NewPublisher(producer, webhooks)
	toOrders, err2 := idemkafka.NewPublisher(producer, orders)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := errors.Join(toWebhooks.Check(ctx), toOrders.Check(ctx)); err != nil {
		return nil, err // the brokers may lose messages that they confirm
	}
	s := &shop{outbox: outbox.New(pool, "shop", toOrders)}
	events := asaas.NewDispatcher(token)
	events.OnPayment(charges.Handler(s.changed))
	s.inbox = idem.NewInbox(pool, events)
	s.relay = relay.New(events, toWebhooks, secret)
	s.store = consumer{seeds, "shop", webhooks, 16, relay.To(s.inbox, secret)}
	return s, nil
}

// changed emits a message when a charge becomes paid. The message and the row of the charge are
// committed together.
func (s *shop) changed(ctx context.Context, _ pgx.Tx, c charges.Change) error {
	order := c.After.ExternalReference.Or("")
	if order == "" || !c.BecamePaid() {
		return nil
	}
	body, err := json.Marshal(map[string]any{"order": order, "charge": c.After.ID, "paid": c.Paid()})
	if err != nil {
		return err
	}
	return s.outbox.Emit(ctx, broker.Message{Type: "charge.paid", Key: order, Body: body})
}

// consumer gives the messages of a topic to so many handlers at once. It is an [idem.Part].
type consumer struct {
	seeds        []string
	group, topic string
	handlers     int
	handle       broker.Handle
}

// Run implements [idem.Part].
func (c consumer) Run(ctx context.Context) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(c.seeds...), kgo.ConsumerGroup(c.group), kgo.ConsumeTopics(c.topic),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	return idemkafka.ConsumeWith(ctx, broker.Consumer{Handlers: c.handlers}, client, c.handle)
}
