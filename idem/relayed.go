package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
)

// Relayed returns a function that passes the messages of a [Relay] to a receiver: a
// [Processor] or an [Inbox] with the same source. The function returns nil once the
// event is stored; then the consumer acknowledges the message to the broker. After an
// error the message must be delivered again.
//
// secrets are those of the relay. Any of them verifies. To rotate, first give the
// consumers both secrets, then the relays the new one.
//
// An error means that Postgres is unavailable or, with a Processor, that the handler
// has failed. Its failures are counted, as those of a provider's deliveries are, and the
// event is parked after [Processor.ParkAfter] of them: no message fails permanently. A
// message is delivered again within seconds, so the default is reached in about 20: raise
// it, or use an Inbox, which tries for hours.
//
// A message that no relay has signed with one of the secrets, that is another source's,
// or that is older than [Common.Retention], is stored as an unhandled event without a
// type. It never reaches a handler. So a topic that is read from its beginning again has
// no second effect, and a wrong secret loses nothing: pass the payload, from
// [Common.List], as the Body of a [broker.Message] to a function with the right secret, and
// [Common.Discard] the stored one.
//
// It panics if a secret is shorter than 32 characters, or if there is none.
func Relayed(to Receiver, secrets ...string) func(context.Context, broker.Message) error {
	if len(secrets) == 0 {
		panic("idem: Relayed has no secret to verify with: give it the relay's")
	}
	for _, s := range secrets {
		checkSecret(s)
	}
	return func(ctx context.Context, m broker.Message) error {
		e, at, err := unseal(m.Body, secrets)
		if name := to.common().SourceName(); err == nil && e.Source != name {
			err = fmt.Errorf("the message is an event of source %q, and came to a consumer of %q: have each read a topic or queue of its own", e.Source, name)
		}
		if limit := to.common().Retention; err == nil && limit > 0 && time.Since(at) > limit {
			err = errors.New("the message is older than Retention: whether it was processed is forgotten; if it was not, raise Retention, then give the payload to Relayed again")
		}
		if err != nil {
			return to.common().setAside(ctx, m.Body, err)
		}
		outcome, err := to.Accept(ctx, e)
		if outcome.Acknowledged() {
			return nil
		}
		return err
	}
}

// setAside stores a message that must not be processed (it is not signed, another
// source's or too old) as unhandled: people see it, and no handler does.
func (c *Common) setAside(ctx context.Context, body []byte, cause error) error {
	payload := append([]byte(setAsideMark), withoutSetAsideMark(body)...)
	e := Event{Source: c.source.Name(), ID: BodyID(payload), Payload: payload}
	_, err := c.receive(ctx, Delivery{Event: e}, storeTime, func(ctx context.Context, e Event) result {
		return c.keep(ctx, e, StateUnhandled, cause)
	})
	return err
}
