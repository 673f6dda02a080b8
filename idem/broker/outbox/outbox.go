package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/outage"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Outbox publishes messages that handlers emit. A message is written in the handler's
// transaction: it exists only if the handler's other effects do, and then it is not
// lost. Workers publish it afterwards, at least once: consumers should ignore an ID
// that they have seen.
//
// An outbox is an [idem.Inbox] of the application's own events. Messages of one Key are
// published in order. List, Replay, Requeue, Discard and Stats work as for other events. A
// dry run does not publish.
//
// The broker is unavailable once three different messages in a row have failed. Workers then try one message at a time;
// once the broker takes one, they publish the others at once. A broker may refuse the messages of one Type only,
// because a topic is missing, full or forbidden. Then workers try one message of that Type now and then. The others of
// the Type wait, at most for as long again as the outage has lasted. Messages of other Types do not wait, unless they
// have the same Key. Give the messages of each topic Types of their own. Package health shows both outages as broker,
// and names the Type. Neither counts towards MaxAttempts, and no message is parked for it. During an outage Replay
// stops with the broker's error.
//
// A message is at fault itself if it fails again after another one of its Type has gone through, or with
// [broker.ErrTooLarge] or [broker.ErrNoQueue]: it is tried again after Backoff, and parked after MaxAttempts. After
// [idem.NoRetry] it is parked immediately; after [idem.RetryAt] it waits.
//
// Retention.Events, a day by default, is how long a message is remembered: an ID of the
// application's own that is emitted again after that is published again.
type Outbox struct{ *idem.Inbox }

// New returns an outbox. source is the application's name among the sources of
// events. It is part of every stored message's row key, so never change it. The
// tables must exist: see [idem.Migrate].
//
// Some settings have other defaults than those of an inbox. Workers is a quarter of the
// pool's connections, so that a broker that hangs leaves the rest to receivers. Timeout
// is 10 seconds, half of which the publisher has.
//
// It panics if the name cannot be used: see [idem.Source].
func New(pool *pgxpool.Pool, source string, p broker.Publisher) *Outbox {
	i := idem.NewInbox(pool, messages{source, p, outage.New()})
	i.Workers, i.Timeout = max(1, int(pool.Config().MaxConns)/4), 10*time.Second
	i.Retention.Events, i.Retention.AllowProcessingTwice = 24*time.Hour, true // no provider delivers a message again
	return &Outbox{i}
}

// inbox is the inside of the outbox's Inbox.
type inbox interface {
	Wake()
	Carrier(ctx context.Context, e idem.Event) string
}

func (o *Outbox) inside() inbox { return inside.Of[inbox](o.Inbox) }

// Emit has a message published after the handler's transaction is committed. It
// takes no round trip: the row travels with COMMIT, as a statement of
// [idem.ExecAtCommit]. So rolling back a savepoint does not undo it: use [Outbox.EmitTx]
// inside of one.
//
// A second message with an ID is not published. If its body is another, that is logged, and listed as a conflict; Emit
// does not fail for it, because the handler's other effects would wait for a message.
//
// It returns an error, which the handler should return, if the message has no Type,
// or if its ID, Type or Key is longer than 255 bytes or not valid text, or if
// a goroutine calls it after the handler has returned. It panics outside of a
// handler: use [Outbox.EmitTx] there.
func (o *Outbox) Emit(ctx context.Context, m broker.Message) error {
	h, ok := handling.From(ctx)
	if !ok {
		panic("outbox: Emit needs the context of a handler: elsewhere use EmitTx")
	}
	row, err := o.row(ctx, m)
	if err != nil {
		return err
	}
	conflict := false
	declare := func(b *pgx.Batch) {
		store.InsertMessage(b, row)
		if m.ID != "" { // which the application may have used before
			store.NoteConflict(b, row.Event, &conflict)
		}
	}
	if !h.DeclareMessage(declare) {
		return fmt.Errorf("outbox: %s is not emitted: the handler has returned: wait for the goroutines that emit", m.Type)
	}
	if h.After != nil {
		h.After.Add(o.inside().Wake)
		h.After.Add(func() { o.logConflict(ctx, row.Event, conflict) })
	}
	return nil
}

// EmitTx has a message published after tx, a transaction of the application's own,
// is committed. Workers find it within Poll. A second message with an ID is as of [Outbox.Emit].
func (o *Outbox) EmitTx(ctx context.Context, tx pgx.Tx, m broker.Message) error {
	row, err := o.row(ctx, m)
	if err != nil {
		return err
	}
	b, conflict := &pgx.Batch{}, false
	store.InsertMessage(b, row)
	store.NoteConflict(b, row.Event, &conflict)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("outbox: emitting %s: %w", m.Type, store.Explain(err))
	}
	o.logConflict(ctx, row.Event, conflict)
	return nil
}

// logConflict logs, once for a message, that another one with its ID and another body was emitted.
func (o *Outbox) logConflict(ctx context.Context, e store.Event, found bool) {
	if !found || o.Logger == nil {
		return
	}
	_ = pgtx.Protect(func() error {
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "outbox conflict: another message was emitted with this ID before, and only that one is published: "+
			"see what the ID names, and give each message its own", slog.String("id", e.ID), slog.String("type", e.Type), slog.String("source", e.Source))
		return nil
	})
}

// row is the message as it is stored.
func (o *Outbox) row(ctx context.Context, m broker.Message) (store.Incoming, error) {
	body := append([]byte{}, m.Body...) // the caller's buffer may hold something else by the commit
	e := idem.Event{Source: o.SourceName(), ID: m.ID, Type: m.Type, Key: m.Key, Payload: body}
	switch {
	case e.Type == "":
		return store.Incoming{}, errors.New("outbox: a message has no Type: say what happened")
	case !store.Nameable(e.ID), !store.Nameable(e.Type), !store.Nameable(e.Key):
		return store.Incoming{}, fmt.Errorf("outbox: the ID, Type or Key of a message is longer than %d bytes, or no text", store.MaxName)
	case e.ID == "":
		e.ID = rand.Text()
	}
	return store.Incoming{Event: store.Event(e), Trace: o.inside().Carrier(ctx, e)}, nil
}

// messages is the source of an outbox.
type messages struct {
	name      string
	publisher broker.Publisher
	outage    *outage.Outage
}

func (m messages) Name() string { return m.name }

// Open refuses all HTTP requests: messages come from handlers.
func (m messages) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, &idem.Refusal{Source: m.name, Reason: "outbox", Hint: "an outbox receives nothing: mount an Inbox"}
}

// Outage has workers try one message at a time, or one of a type, while the broker takes none.
func (m messages) Outage() *outage.Outage { return m.outage }

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

// publish publishes a message, and notes whether the broker takes it.
func (m messages) publish(ctx context.Context, message broker.Message) error {
	// Before the attempt's end: a publish that is not over then passes for the handler's failure.
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(end)/2)
	defer cancel()
	begun := time.Now()
	_, err := pgtx.Within(ctx, errHangs, func() (struct{}, error) { return struct{}{}, m.publisher.Publish(ctx, message) }, func(struct{}) {})
	switch {
	case err == nil:
		m.outage.Done(message.Type)
		return nil
	case handling.IsFinal(err), !handling.RetryAt(err).IsZero():
		return err
	}
	var before time.Time
	if h, ok := handling.From(ctx); ok {
		before = h.Failed
	}
	own, wait := m.outage.Failed(outage.Failure{
		Type: message.Type, ID: message.ID, Before: before, Took: time.Since(begun), Err: err,
		Answered: errors.Is(err, broker.ErrTooLarge) || errors.Is(err, broker.ErrNoQueue),
	})
	if own {
		return err
	}
	return &handling.Later{Err: err, At: time.Now().Add(wait), Away: true}
}

var errHangs = errors.New("the publisher has not returned, although its context has ended")
