package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Outbox publishes messages that handlers emit. A message is written in the handler's
// transaction: it exists only if the handler's other effects do, and then it is not
// lost. Workers publish it afterwards, at least once: consumers should ignore an ID
// that they have seen.
//
// An outbox is an [Inbox] of the application's own events. Messages of one Key are
// published in order. List, Replay, Requeue, Discard and Stats work as for other events. A
// dry run does not publish.
//
// While the broker is unavailable, workers try one message at a time, every Poll. That
// does not count towards MaxAttempts, no message is parked for it, and the first one that
// the broker takes has workers publish the others at once. An error of the
// [broker.Publisher] means that the broker is unavailable, unless the message is at fault. After
// an error with broker.ErrTooLarge or broker.ErrNoQueue, and after a panic, a message is
// tried again after Backoff, and parked after MaxAttempts; after [NoRetry] it is parked
// immediately; after [RetryAt] it waits.
//
// Retention, a day by default, is how long a message is remembered: an ID of the
// application's own that is emitted again after that is published again.
//
//	outbox := idem.NewOutbox(pool, "shop", publisher)
//	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
//		…
//		return outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: order, Body: body})
//	})
//	err := idem.Serve(ctx, server, processor, outbox)
type Outbox struct{ *Inbox }

// NewOutbox returns an outbox. source is the application's name among the sources of
// events. It is part of every stored message's row key, so never change it. The
// tables must exist: see [Migrate].
//
// Two settings have other defaults than those of an inbox. Workers is a quarter of the
// pool's connections, so that a broker that hangs leaves the rest to receivers. Timeout
// is 10 seconds, half of which the publisher has.
//
// It panics if the name cannot be used: see [Source].
func NewOutbox(pool *pgxpool.Pool, source string, p broker.Publisher) *Outbox {
	m := messages{source, p, new(outage)}
	i := NewInbox(pool, m)
	i.Workers, i.Timeout, i.outage = max(1, int(pool.Config().MaxConns)/4), 10*time.Second, m.outage
	i.Retention, i.minRetention = 24*time.Hour, 0
	return &Outbox{i}
}

// Emit has a message published after the handler's transaction is committed. It
// takes no round trip: the row travels with COMMIT, as a statement of
// [ExecAtCommit]. So rolling back a savepoint does not undo it: use [Outbox.EmitTx]
// inside of one.
//
// It returns an error, which the handler should return, if the message has no Type,
// or if its ID, Type or Key is longer than 255 bytes or not valid text, or if
// a goroutine calls it after the handler has returned. It panics outside of a
// handler: use [Outbox.EmitTx] there.
func (o *Outbox) Emit(ctx context.Context, m broker.Message) error {
	h, ok := handlingFrom(ctx)
	if !ok {
		panic("idem: Emit needs the context of a handler: elsewhere use EmitTx")
	}
	row, err := o.row(ctx, m)
	if err != nil {
		return err
	}
	if !h.declare(func() { store.InsertMessage(&h.messages, row) }) {
		return fmt.Errorf("idem: %s is not emitted: the handler has returned: wait for the goroutines that emit", m.Type)
	}
	if h.after != nil {
		h.after.add(o.wakeWorkers)
	}
	return nil
}

// EmitTx has a message published after tx, a transaction of the application's own,
// is committed. Workers find it within Poll.
func (o *Outbox) EmitTx(ctx context.Context, tx pgx.Tx, m broker.Message) error {
	row, err := o.row(ctx, m)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	store.InsertMessage(b, row)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("idem: emitting %s: %w", m.Type, explain(err))
	}
	return nil
}

// row is the message as it is stored.
func (o *Outbox) row(ctx context.Context, m broker.Message) (store.Incoming, error) {
	body := append([]byte{}, m.Body...) // the caller's buffer may hold something else by the commit
	e := Event{Source: o.source.Name(), ID: m.ID, Type: m.Type, Key: m.Key, Payload: body}
	switch {
	case e.Type == "":
		return store.Incoming{}, errors.New("idem: a message has no Type: say what happened")
	case !nameable(e.ID), !nameable(e.Type), !nameable(e.Key):
		return store.Incoming{}, fmt.Errorf("idem: the ID, Type or Key of a message is longer than %d bytes, or no text", maxName)
	case e.ID == "":
		e.ID = rand.Text()
	}
	return store.Incoming{Event: e.row(), Trace: o.carrier(ctx, e)}, nil
}

// messages is the source of an outbox.
type messages struct {
	name      string
	publisher broker.Publisher
	outage    *outage
}

func (m messages) Name() string { return m.name }

// Open refuses what comes by HTTP: messages come from handlers.
func (m messages) Open(*http.Request) (Event, error) {
	return Event{}, &Refusal{Source: m.name, Reason: "outbox", Hint: "an outbox receives nothing: mount a Processor or an Inbox"}
}

func (messages) Ignores(string) bool { return false }

// Handles has metrics show each type: they are the application's own.
func (messages) Handles(string) bool { return true }

func (m messages) Route(e Event) (Work, error) {
	return func(ctx context.Context, _ pgx.Tx) error {
		if IsDryRun(ctx) {
			return nil // what is published cannot be rolled back
		}
		return m.publish(ctx, broker.Message{Source: e.Source, ID: e.ID, Type: e.Type, Key: e.Key, Time: e.OccurredAt, Body: e.Payload})
	}, nil
}

// brokerWait is how long a message waits that the broker has not taken.
const brokerWait = 2 * time.Second

// publish publishes a message, and notes whether the broker is available.
func (m messages) publish(ctx context.Context, message broker.Message) error {
	// Before the attempt's end: what is not over then passes for the handler's failure.
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(end)/2)
	defer cancel()
	err := m.publisher.Publish(ctx, message)
	switch {
	case err == nil:
		m.outage.end()
	case isFinal(err), !retryAt(err).IsZero(), errors.Is(err, broker.ErrTooLarge), errors.Is(err, broker.ErrNoQueue):
	default:
		m.outage.begin(err)
		return RetryAt(time.Now().Add(brokerWait), err)
	}
	return err
}
