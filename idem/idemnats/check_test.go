package idemnats_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/idem/idemnats"
)

func TestCheckNamesWhatWouldLoseConfirmedMessages(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	js := connect(t, s.running.ClientURL())
	few, err := nats.Connect(s.running.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(few.Close)
	givesUp, err := jetstream.New(few)
	if err != nil {
		t.Fatal(err)
	}
	const oneReplica = "has one replica" // of the server here
	for name, c := range map[string]struct {
		js   jetstream.JetStream
		now  *jetstream.StreamConfig // as it is changed after NewPublisher; nil deletes the stream
		want []string
	}{
		"a work queue":            {js, &jetstream.StreamConfig{Retention: jetstream.LimitsPolicy, MaxAge: 96 * time.Hour}, []string{oneReplica}},
		"a full one refuses":      {js, &jetstream.StreamConfig{Discard: jetstream.DiscardNew, MaxBytes: 1 << 20, MaxMsgs: 10}, []string{oneReplica}},
		"a full one deletes":      {js, &jetstream.StreamConfig{MaxBytes: 1 << 20}, []string{oneReplica, "set DiscardNew, "}},
		"a full subject deletes":  {js, &jetstream.StreamConfig{Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 9}, []string{oneReplica, "DiscardNewPerSubject"}},
		"a full subject refuses":  {js, &jetstream.StreamConfig{Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 9}, []string{oneReplica}},
		"for an hour":             {js, &jetstream.StreamConfig{MaxAge: time.Hour}, []string{oneReplica, "after 1h0m0s"}},
		"without a consumer":      {js, &jetstream.StreamConfig{Retention: jetstream.InterestPolicy}, []string{oneReplica, "no consumer"}},
		"the connection gives up": {givesUp, &jetstream.StreamConfig{}, []string{oneReplica, "nats.MaxReconnects(-1)"}},
		"it confirms nothing":     {js, &jetstream.StreamConfig{NoAck: true}, []string{oneReplica, "make it without NoAck"}},
		"there is none":           {js, nil, []string{"does not exist: create it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: strings.ReplaceAll(name, " ", "_")})
			if err != nil {
				t.Fatal(err)
			}
			p, err := idemnats.NewPublisher(c.js, stream, "hooks")
			if err != nil {
				t.Fatal(err)
			}
			if c.now == nil {
				err = js.DeleteStream(t.Context(), stream.CachedInfo().Config.Name)
			} else {
				c.now.Name = stream.CachedInfo().Config.Name
				_, err = js.UpdateStream(t.Context(), *c.now)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = p.Check(t.Context())
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Check returned %v, want %q", err, want)
				}
			}
			if err != nil && strings.Count(err.Error(), "idemnats: ") != len(c.want) {
				t.Errorf("Check returned %v, want %d things", err, len(c.want))
			}
		})
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	js := connect(t, s.running.ClientURL())
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "hooks"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := idemnats.NewPublisher(js, stream, "hooks")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Check(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Check returned %v, want that it was canceled", err)
	}
}
