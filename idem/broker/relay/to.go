package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// To returns a function that passes the messages of a [Relay] to a receiver: an
// [idem.Inbox] with the same source. The function returns nil once the
// event is stored; then the consumer acknowledges the message to the broker. After an
// error the message must be delivered again.
//
// secrets are those of the relay. Any of them verifies. To rotate, first give the
// consumers both secrets, then the relays the new one.
//
// An error means that the event is not stored: Postgres is unavailable or, with WorkFirst, the
// first try has failed and no workers run. The message is delivered again within seconds,
// and nothing is counted: run workers, which try for hours and park what always fails.
//
// A message that no relay has signed with one of the secrets, that is another source's,
// or that is older than the Events of [idem.Inbox.Retention], is stored as a parked event of
// [SetAsideType], with the cause as its error. It never reaches a handler, and health is red until it is
// readmitted, discarded or acknowledged. About 1,000 may be set aside at a time: beyond that the broker keeps
// the message. So a topic that is read from its beginning again has
// no second effect, and a wrong secret loses nothing: [Readmit], or idem
// readmit, with the right one.
//
// It panics if a secret is shorter than 32 characters, or if there is none.
func To(receiver idem.Receiver, secrets ...string) broker.Handle {
	if err := checkSecrets("To", secrets...); err != nil {
		panic(err.Error())
	}
	verify, in := newVerifier(receiver, secrets), inside.Of[inbox](receiver)
	return func(ctx context.Context, m broker.Message) error {
		verified, err := verify(m)
		if err != nil {
			return in.SetAside(ctx, m.Body, err)
		}
		if verified.event.Type == store.CanaryType {
			return noteCanary(ctx, in)
		}
		return verified.pass(ctx, receiver)
	}
}

// SetAsideType is the type of the parked event that a message becomes which must reach no handler: see [To].
const SetAsideType = store.SetAsideType

// inbox is the inside of a receiver.
type inbox interface {
	Inbox() *idem.Inbox
	Pool() *pgxpool.Pool
	Choose(ctx context.Context, f idem.Filter) (idem.Filter, error)
	SetAside(ctx context.Context, body []byte, cause error) error
}

// noteCanary records that a canary's delivery has come through the broker.
func noteCanary(ctx context.Context, receiver inbox) error {
	err := pgtx.Ask(ctx, receiver.Pool(), func(ctx context.Context, conn *pgxpool.Conn) error {
		return store.NoteCanary(ctx, conn, receiver.Inbox().SourceName())
	})
	if err != nil {
		return fmt.Errorf("relay: recording a canary: %w", store.Explain(err))
	}
	return nil
}

// verified is a message of the relay's.
type verified struct {
	event idem.Event
	at    time.Time // when it was relayed
}

// newVerifier returns a function that verifies messages for a receiver.
func newVerifier(receiver idem.Receiver, secrets []string) func(broker.Message) (verified, error) {
	i := inside.Of[inbox](receiver).Inbox()
	return func(m broker.Message) (verified, error) {
		e, at, err := unseal(m.Body, secrets)
		if name := i.SourceName(); err == nil && e.Source != name {
			err = fmt.Errorf("the message is an event of source %q, and came to a consumer of %q: have each read a topic or queue of its own", e.Source, name)
		}
		if limit := i.Retention.Events; err == nil && limit > 0 && time.Since(at) > limit {
			err = errors.New("the message is older than Retention: whether it was processed is forgotten; if it was not, raise Retention, then readmit it")
		}
		return verified{e, at}, err
	}
}

// pass has the receiver store or process the event.
func (v verified) pass(ctx context.Context, receiver idem.Receiver) error {
	outcome, err := receiver.Accept(wire.WithRelayed(ctx, v.at), v.event)
	switch {
	case outcome.Acknowledged():
		return nil
	case err == nil: // of a receiver that has an Accept of its own
		return fmt.Errorf("relay: the event is not stored: its outcome is %q", outcome)
	}
	return err
}

// Readmitted is the result of [Readmit].
type Readmitted struct {
	Accepted int   // verified now, and stored or processed
	Left     int   // set aside still
	Why      error // why the first of those is; nil if none is
}

// Readmit verifies messages again that [To] has set aside, and passes those that are genuine to
// the receiver: once the consumers have the right secret, the message's format or source. A message
// that is accepted is discarded where it was set aside. The others stay. It may be called
// again, and while consumers run; an event that came in the meantime is a duplicate.
//
// f narrows the messages that were set aside: its Types and States are always theirs. The zero value
// means all of them. Those that somebody has seen are named by an operator.Plan.
//
// An error means that a secret is missing or shorter than 32 characters, that Postgres is
// unavailable, or that an event was not stored: the message stays set aside.
func Readmit(ctx context.Context, receiver idem.Receiver, f idem.Filter, secrets ...string) (r Readmitted, err error) {
	if err := checkSecrets("Readmit", secrets...); err != nil {
		return r, err
	}
	verify := newVerifier(receiver, secrets)
	in := inside.Of[inbox](receiver)
	f.Types, f.States = []string{SetAsideType}, []idem.State{idem.StateParked}
	aside, err := in.Choose(ctx, f)
	if err != nil {
		return r, fmt.Errorf("relay: readmitting messages: %w", err)
	}
	var failed error
	for s, err := range in.Inbox().List(ctx, aside) {
		if err != nil {
			return r, fmt.Errorf("relay: readmitting messages: %w", err)
		}
		m, err := verify(broker.Message{Body: s.Payload})
		if err != nil {
			if r.Left++; r.Why == nil {
				r.Why = err
			}
			continue
		}
		if err := m.pass(ctx, receiver); err != nil {
			r.Left++
			failed = errors.Join(failed, err)
			continue
		}
		only := idem.Filter{Scopes: []string{s.Scope}, IDs: []string{s.ID}, States: []idem.State{idem.StateParked}}
		if _, err := in.Inbox().Discard(ctx, only, "verified again, and accepted"); err != nil {
			return r, fmt.Errorf("relay: readmitting messages: an event was accepted, and its message is set aside still: run it again: %w", err)
		}
		r.Accepted++
	}
	if failed != nil {
		return r, fmt.Errorf("relay: readmitting messages: %w", failed)
	}
	return r, nil
}
