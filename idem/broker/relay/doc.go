// Package relay puts a broker in front of Postgres. A relay publishes a provider's
// deliveries; in the same program or another one, a consumer of the broker passes the
// messages to the function that [To] returns, which stores or processes them:
//
//	provider → relay.New → broker → Consume → relay.To → Inbox → handlers
//
//	http.Handle("POST /webhooks/asaas", relay.New(events, publisher, secret))
//
//	err := idemkafka.Consume(ctx, client, relay.To(inbox, secret))
//
// There is a module for each of several brokers, see package broker.
//
// A consumer verifies the relay's signature, so no handler sees a message of another
// sender.
//
// While the broker is unavailable, a relay answers 503. A publisher around the broker's can
// have the inbox store the event instead, which may then overtake those in the broker:
//
//	func (p orStored) Publish(ctx context.Context, m broker.Message) error {
//		if p.Publisher.Publish(ctx, m) == nil {
//			return nil
//		}
//		return p.store(ctx, m) // relay.To(inbox, secret)
//	}
//
// A broker hardly makes an application faster: an [idem.Inbox] stores about as many events
// as a broker that writes them to the disk. It keeps events while Postgres is
// unavailable, and lets other programs read them.
package relay
