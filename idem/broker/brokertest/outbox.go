package brokertest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
)

func (s *shop) newOutbox(source string, p broker.Publisher) *outbox.Outbox {
	o := outbox.New(s.pool, source, p)
	o.Logger, o.Poll = nil, 100*time.Millisecond
	return o
}

// emit emits messages in one transaction.
func (s *shop) emit(o *outbox.Outbox, messages ...broker.Message) {
	s.Helper()
	err := pgx.BeginFunc(s.Context(), s.pool, func(tx pgx.Tx) error {
		for _, m := range messages {
			if err := o.EmitTx(s.Context(), tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// outboxPublishes emits messages, and compares the messages that a consumer gets.
func outboxPublishes(s *shop) {
	o := s.newOutbox("shop é", s.queue.Publisher)
	o.Backoff = func(int) time.Duration { return 0 }
	var want []broker.Message
	for n := range 8 {
		for k := range 5 {
			m := broker.Message{
				Source: "shop é", ID: fmt.Sprintf("%d&%d ü", k, n), Type: "order.paid", Key: fmt.Sprintf("order %d/ç", k),
				Body: fmt.Appendf(nil, "body %d\n\x00\xff", n),
			}
			if k == 0 {
				m.Key = ""
			}
			want = append(want, m)
		}
	}
	s.emit(o, want...)
	Background(s, o.Run)
	arrived := s.collect()
	s.await("all messages to arrive", func() bool { return len(arrived()) >= len(want) })
	got := arrived()
	for i := range got {
		if got[i].Time.IsZero() {
			s.Errorf("message %q arrived without its time", got[i].ID)
		}
		got[i].Time = time.Time{}
	}
	if got, want := byKey(got), byKey(want); !reflect.DeepEqual(got, want) {
		s.Errorf("the messages of each Key arrived as\n%q\nwant\n%q", got, want)
	}
}

// byKey returns the messages of each Key. Those without one have no order.
func byKey(messages []broker.Message) map[string][]broker.Message {
	keys := map[string][]broker.Message{}
	for _, m := range messages {
		keys[m.Key] = append(keys[m.Key], m)
	}
	slices.SortFunc(keys[""], func(a, b broker.Message) int { return strings.Compare(a.ID, b.ID) })
	return keys
}

// outboxOutlivesAnOutage emits messages while the broker hangs. A message with a failure that
// counts is parked.
func outboxOutlivesAnOutage(s *shop) {
	if s.queue.Hang == nil {
		s.Skip("this module cannot have its broker hang")
	}
	failed := make(chan error, 1000)
	o := s.newOutbox("shop", failures{s.queue.Publisher, failed})
	o.MaxAttempts = 1
	Background(s, o.Run)
	arrived := s.collect()
	const messages = 10
	emit := func(first int) {
		var all []broker.Message
		for n := range messages {
			id := fmt.Sprint(first + n)
			all = append(all, broker.Message{ID: id, Type: "order.paid", Key: "order " + id})
		}
		s.emit(o, all...)
	}
	emit(0)
	s.await("messages to arrive", func() bool { return len(arrived()) == messages })
	resume := s.queue.Hang(s)
	emit(messages)
	for range 2 {
		Next(s, failed)
	}
	resume()
	s.await("the others to arrive", func() bool { return len(arrived()) == 2*messages })
}

// failures is a publisher that says when it fails.
type failures struct {
	to  broker.Publisher
	are chan<- error
}

func (f failures) Publish(ctx context.Context, m broker.Message) error {
	err := f.to.Publish(ctx, m)
	if err != nil {
		f.are <- err
	}
	return err
}
