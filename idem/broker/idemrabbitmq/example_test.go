package idemrabbitmq_test

import (
	"context"
	"fmt"
	"net"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/idemrabbitmq"
)

func Example() {
	url := os.Getenv("AMQP_URL")
	dial := func() (*amqp.Connection, error) { return amqp.Dial(url) }
	declare := func() error {
		conn, err := dial()
		if err != nil {
			return err
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		_, err = ch.QueueDeclare("webhooks", true, false, false, false, amqp.Table{
			"x-queue-type": "quorum", "x-overflow": "reject-publish", // from RabbitMQ 4.0 on also "x-delivery-limit": -1
			"x-single-active-consumer": true, // keeps the order
		})
		return err
	}
	if err := declare(); err != nil {
		fmt.Println("declaring the queue:", err)
		return
	}
	publisher := idemrabbitmq.NewPublisher(dial, "", "webhooks")
	defer publisher.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := publisher.Publish(ctx, broker.Message{Source: "shop", ID: "1", Type: "order.paid", Key: "order 7"}); err != nil {
		fmt.Println(err)
		return
	}
	err := idemrabbitmq.Consume(ctx, dial, "webhooks", func(_ context.Context, m broker.Message) error { // or relay.To(inbox, secret)
		fmt.Println(m.Type, m.Key)
		cancel()
		return nil
	})
	fmt.Println(err)
}

// While the broker is unavailable a publisher fails: a relay answers 503, and an outbox tries
// again.
func ExamplePublisher_Publish() {
	dial := func() (*amqp.Connection, error) {
		return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused")}
	}
	publisher := idemrabbitmq.NewPublisher(dial, "", "webhooks")
	fmt.Println(publisher.Publish(context.Background(), broker.Message{ID: "1", Type: "order.paid"}))
	// Output:
	// idemrabbitmq: order.paid 1 is not published: connecting to the broker: dial: connection refused
}
