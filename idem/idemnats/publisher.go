package idemnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/idem/broker"
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
	batches bool // whether the stream takes them
	sends   broker.Batcher[*nats.Msg]
}

var _ broker.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher to a stream, which must take the subject. It returns an
// error if the stream would confirm messages that it does not have on disk: if its
// storage is memory, or its persist mode asynchronous, or if it confirms none. Other ways
// to lose messages are for [Publisher.Check].
func NewPublisher(js jetstream.JetStream, stream jetstream.Stream, subject string) (*Publisher, error) {
	config := stream.CachedInfo().Config
	if err := checkStream(config); err != nil {
		return nil, err
	}
	if subject == "" || strings.ContainsAny(subject, "*> \t\r\n") {
		return nil, fmt.Errorf("idemnats: no message can have the subject %q: it must not be empty, nor have spaces or wildcards", subject)
	}
	p := &Publisher{js: js, stream: config.Name, subject: subject, batches: config.AllowAtomicPublish}
	p.sends.Send, p.sends.MaxItems = p.publishGroup, maxGroup
	p.sends.Size, p.sends.MaxSize = func(m *nats.Msg) int { return len(m.Data) }, maxGroupSize
	return p, nil
}

// Publish implements [broker.Publisher]: it returns nil once the stream has confirmed
// the message. The stream drops one with the same Source and ID that it has received
// within its Duplicates window.
func (p *Publisher) Publish(ctx context.Context, m broker.Message) error {
	msg := p.message(m)
	publish := p.publishOne
	if p.batches {
		publish = p.sends.Do
	}
	if err := publish(ctx, msg); err != nil {
		return fmt.Errorf("idemnats: %s %s is not published to stream %s: %w", m.Type, m.ID, p.stream, p.explain(ctx, err, msg))
	}
	return nil
}

// message is the message as the server gets it.
func (p *Publisher) message(m broker.Message) *nats.Msg {
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

// explain adds a remedy to an error.
func (p *Publisher) explain(ctx context.Context, err error, msg *nats.Msg) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("%w with its %d bytes: raise the server's max_payload (%d) and the stream's MaxMsgSize: %w",
			broker.ErrTooLarge, len(msg.Data), p.js.Conn().MaxPayload(), err)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		if _, absent := p.js.StreamNameBySubject(ctx, msg.Subject); errors.Is(absent, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("%w: no stream takes the subject %q: see the stream's Subjects: %w", broker.ErrNoQueue, msg.Subject, err)
		}
		return fmt.Errorf("the leader of the stream with the subject %q is unavailable: %w", msg.Subject, err)
	case errors.Is(err, nats.ErrConnectionClosed):
		return closedForGood(err)
	}
	return err
}

func closedForGood(err error) error {
	return fmt.Errorf("the connection is closed for good: connect with nats.MaxReconnects(-1): %w", err)
}
