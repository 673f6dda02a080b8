package outbox

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/internal/handling"
)

// messages is the source of an outbox.
type messages struct {
	name      string
	publisher broker.Publisher
	outage    *outage
}

func (m messages) Name() string { return m.name }

// Open refuses all HTTP requests: messages come from handlers.
func (m messages) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, &idem.Refusal{Source: m.name, Reason: "outbox", Hint: "an outbox receives nothing: mount a Processor or an Inbox"}
}

// Outage has workers try one message at a time while the broker is unavailable.
func (m messages) Outage() (since time.Time, err error) { return m.outage.now() }

func (messages) Ignores(string) bool { return false }

// Handles has metrics show each type: they are the application's own.
func (messages) Handles(string) bool { return true }

func (m messages) Route(e idem.Event) (idem.Work, error) {
	return func(ctx context.Context, _ pgx.Tx) error {
		if idem.IsDryRun(ctx) {
			return nil // a published message cannot be rolled back
		}
		return m.publish(ctx, broker.Message{Source: e.Source, ID: e.ID, Type: e.Type, Key: e.Key, Time: e.OccurredAt, Body: e.Payload})
	}, nil
}

// brokerWait is the time that a message waits after the broker has not taken it.
const brokerWait = 2 * time.Second

// publish publishes a message, and notes whether the broker is available.
func (m messages) publish(ctx context.Context, message broker.Message) error {
	// Before the attempt's end: a publish that is not over then passes for the handler's failure.
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(end)/2)
	defer cancel()
	err := m.publisher.Publish(ctx, message)
	switch {
	case err == nil:
		m.outage.end(message.ID)
	case handling.IsFinal(err), !handling.RetryAt(err).IsZero(), errors.Is(err, broker.ErrTooLarge), errors.Is(err, broker.ErrNoQueue):
	default:
		if m.outage.fail(message.ID, err) {
			return err
		}
		return idem.RetryAt(time.Now().Add(brokerWait), err)
	}
	return err
}
