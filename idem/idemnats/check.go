package idemnats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Check asks the server whether a message that the stream has confirmed can be lost. It
// returns an error that names each thing that would lose messages and the change that prevents it,
// or that the server did not tell. It changes nothing. Call it once at the start, and
// log the error, or stop.
//
// It names a stream that does not exist, one that [NewPublisher] refuses, one with
// messages that are lost with one disk, and one that deletes messages that no consumer has
// read: because it is full, has no consumer, or keeps them for less than 4 days, in
// which Postgres may be unavailable. It also names a connection that gives up. It cannot
// see how often the servers write to their disks: see the package's documentation.
func (p *Publisher) Check(ctx context.Context) error {
	var errs []error
	object := func(why string) {
		errs = append(errs, fmt.Errorf("idemnats: stream %s %s", p.stream, why))
	}
	stream, err := p.js.Stream(ctx, p.stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		object("does not exist: create it")
	case err != nil:
		errs = append(errs, fmt.Errorf("idemnats: asking for the settings of stream %s: %w", p.stream, err))
	default:
		config := stream.CachedInfo().Config
		errs = append(errs, checkStream(config))
		checkKept(config, object)
	}
	if o := p.js.Conn().Opts; !o.AllowReconnect || o.MaxReconnect >= 0 {
		errs = append(errs, errors.New("idemnats: the connection is closed for good when the servers are unavailable for long: connect with nats.MaxReconnects(-1)"))
	}
	return errors.Join(errs...)
}

// checkStream returns an error if the stream confirms messages that it does not have on disk.
func checkStream(c jetstream.StreamConfig) error {
	refuse := func(why string) error { return fmt.Errorf("idemnats: stream %s %s", c.Name, why) }
	switch {
	case c.Storage == jetstream.MemoryStorage:
		return refuse("is in memory, and a restart would lose events that were answered with 200: make it with FileStorage")
	case c.PersistMode == jetstream.AsyncPersistMode:
		return refuse("confirms messages before they are written: make it with DefaultPersistMode")
	case c.NoAck:
		return refuse("confirms nothing: make it without NoAck")
	}
	return nil
}

// longOutage is the shortest time for which a stream should keep messages: Postgres may be
// unavailable for a long weekend.
const longOutage = 4 * 24 * time.Hour

// checkKept objects to settings that lose messages and may be deliberate.
func checkKept(c jetstream.StreamConfig, object func(why string)) {
	if c.Replicas < 2 {
		object("has one replica, and is lost with its disk: have 3")
	}
	if c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0) {
		object("deletes its oldest messages when it is full, consumed or not: set DiscardNew, with which it refuses new ones instead")
	}
	if c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject {
		object("deletes the oldest messages of a subject, consumed or not: leave MaxMsgsPerSubject out, or set DiscardNew and DiscardNewPerSubject")
	}
	if c.MaxAge > 0 && c.MaxAge < longOutage {
		object(fmt.Sprintf("deletes messages after %s, consumed or not: leave MaxAge out, or set it to how long Postgres may be unavailable, which is 4 days at least", c.MaxAge))
	}
	if c.Retention == jetstream.InterestPolicy {
		object("deletes messages while it has no consumer: set WorkQueuePolicy or LimitsPolicy")
	}
}
