package idem

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// A message's body is a line with the signature of the rest, a line of JSON that
// names the event, and the provider's body as it is.
const sealed = "paghooks-relay-1 "

// sealedName is the line of a message that names its event.
type sealedName struct {
	eventName
	RelayedAt time.Time `json:"relayed_at"`
}

// seal is the body of an event's message, which is relayed at a time. The event is
// normalized.
func seal(e Event, at time.Time, secret string) []byte {
	header, err := json.Marshal(sealedName{nameOf(e), at.UTC()})
	if err != nil {
		panic(err) // texts, a number, and a time that JSON has
	}
	signed := append(append(header, '\n'), e.Payload...)
	return append([]byte(sealed+hex.EncodeToString(sign(signed, secret))+"\n"), signed...)
}

func sign(signed []byte, secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(sealed))
	mac.Write(signed)
	return mac.Sum(nil)
}

// unseal verifies a message's body, and only then reads it.
func unseal(body []byte, secrets []string) (e Event, at time.Time, err error) {
	body = withoutSetAsideMark(body) // given once more
	head, signed, ok := bytes.Cut(body, []byte("\n"))
	digits, found := bytes.CutPrefix(head, []byte(sealed))
	if !ok || !found {
		return e, at, errors.New("the message is not a relay's: see who else publishes to its topic or queue")
	}
	signature, err := hex.DecodeString(string(digits))
	if err != nil || !anySigns(signed, signature, secrets) {
		return e, at, errors.New("the message is not signed with one of the secrets: let relay and consumer have the same one, then give the payload to Relayed again")
	}
	header, payload, _ := bytes.Cut(signed, []byte("\n"))
	var s sealedName
	err = json.Unmarshal(header, &s)
	if err == nil {
		e, err = s.event(payload)
	}
	if err != nil {
		return e, at, fmt.Errorf("the message is of a newer relay: update the consumer, then give the payload to Relayed again: %w", err)
	}
	return e, s.RelayedAt, nil
}

func anySigns(signed, signature []byte, secrets []string) (yes bool) {
	for _, s := range secrets {
		if hmac.Equal(sign(signed, s), signature) {
			yes = true
		}
	}
	return yes
}
