package idemnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/batch"
)

// Publisher publishes messages to a stream. The exported fields are settings: change
// them before the first message.
type Publisher struct {
	// Partitions, if above 1, is the number of partitions into which messages are
	// divided by their Key, so that several processes keep the order: see the
	// package's documentation. The partition's number, from 0, is added to the
	// subject after a dot. If Partitions changes, so does the partition of a Key.
	// Default: 1.
	Partitions int

	js      jetstream.JetStream
	stream  string
	subject string
	writer  *batch.Writer[*nats.Msg, error] // nil where the stream takes no batches
}

var _ idem.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher to a stream, which must take the subject. It returns an error if the stream would confirm messages that it does not
// have on disk: if its storage is memory, or its persist mode asynchronous, or if it
// confirms none.
//
// It logs a warning to slog.Default() if the stream has one replica, if it deletes
// messages that nobody has consumed when it is full or they are old, or if the
// connection gives up after so many attempts to connect again.
func NewPublisher(js jetstream.JetStream, stream jetstream.Stream, subject string) (*Publisher, error) {
	config := stream.CachedInfo().Config
	if err := checkStream(config); err != nil {
		return nil, err
	}
	if subject == "" || strings.ContainsAny(subject, "*> \t\r\n") {
		return nil, fmt.Errorf("idemnats: no message can have the subject %q: it must not be empty, nor have spaces or wildcards", subject)
	}
	for _, warning := range warnings(config, js.Conn().Opts) {
		slog.Warn("idemnats: "+warning, slog.String("stream", config.Name))
	}
	p := &Publisher{js: js, stream: config.Name, subject: subject}
	if config.AllowAtomicPublish {
		p.writer = batch.NewWriter(p.publishGroup, func(m *nats.Msg) int { return len(m.Data) })
	}
	return p, nil
}

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

// warnings are what may lose messages in ways that somebody may have chosen.
func warnings(c jetstream.StreamConfig, o nats.Options) (all []string) {
	if c.Replicas < 2 {
		all = append(all, "the stream has one replica: it is away with its server, and lost with its disk")
	}
	if c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0) {
		all = append(all, "the stream deletes its oldest messages when it is full, consumed or not: with DiscardNew it refuses new ones instead")
	}
	if c.MaxAge > 0 {
		all = append(all, fmt.Sprintf("the stream deletes messages after %s, consumed or not", c.MaxAge))
	}
	if !o.AllowReconnect || o.MaxReconnect >= 0 {
		all = append(all, "the connection is closed for good when the servers are away for long: connect with nats.MaxReconnects(-1)")
	}
	return all
}

// Publish implements [idem.Publisher]: it returns nil once the stream has confirmed
// the message. The stream drops one with the same Source and ID that it has received
// within its Duplicates window.
func (p *Publisher) Publish(ctx context.Context, m idem.Message) error {
	msg := p.message(m)
	if p.writer == nil {
		return p.explain(p.publishOne(ctx, msg), m)
	}
	err, answered := p.writer.Write(ctx, msg)
	if !answered {
		err = ctx.Err()
	}
	return p.explain(err, m)
}

// message is the message as the server gets it.
func (p *Publisher) message(m idem.Message) *nats.Msg {
	msg := nats.NewMsg(p.subject)
	if p.Partitions > 1 {
		msg.Subject += "." + strconv.Itoa(partition(cmp.Or(m.Key, m.ID), p.Partitions))
	}
	for name, value := range m.CloudEvent() {
		msg.Header[prefix+name] = []string{encode(value)}
	}
	if m.ID != "" {
		msg.Header[jetstream.MsgIDHeader] = []string{encode(m.Source + "/" + m.ID)}
	}
	msg.Data = m.Body
	return msg
}

// partition is the same in every version: consumers may have messages of all of them.
func partition(key string, partitions int) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(partitions))
}

// explain says what to do about an error.
func (p *Publisher) explain(err error, m idem.Message) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("idemnats: the message is too large with its %d bytes: raise the server's max_payload (%d) and the stream's MaxMsgSize: %w",
			len(m.Body), p.js.Conn().MaxPayload(), err)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("idemnats: no stream takes the subject %q, or its leader is away: %w", p.subject, err)
	case errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("idemnats: the connection is closed for good: connect with nats.MaxReconnects(-1): %w", err)
	}
	return fmt.Errorf("idemnats: publishing to stream %s: %w", p.stream, err)
}
