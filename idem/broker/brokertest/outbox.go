package brokertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
)

// outboxPublishes emits messages, and compares the messages that a consumer gets.
func outboxPublishes(s *shop) {
	outbox := outbox.New(s.pool, "shop é", s.queue.Publisher)
	outbox.Logger, outbox.Poll = nil, 100*time.Millisecond
	outbox.Backoff = func(int) time.Duration { return 0 }
	const keys, each = 5, 8
	want := map[string]broker.Message{}
	err := pgx.BeginFunc(s.Context(), s.pool, func(tx pgx.Tx) error {
		for n := range each {
			for k := range keys {
				m := broker.Message{
					Source: "shop é", ID: fmt.Sprintf("%d&%d ü", k, n), Type: "order.paid", Key: fmt.Sprintf("order %d/ç", k),
					Body: fmt.Appendf(nil, "body %d\n\x00\xff", n),
				}
				if k == 0 {
					m.Key = ""
				}
				want[m.ID] = m
				if err := outbox.EmitTx(s.Context(), tx, m); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	Background(s, outbox.Run)

	var mu sync.Mutex
	got := map[string]broker.Message{}
	var arrived []string // IDs, each once
	s.consume(func(_ context.Context, m broker.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if _, again := got[m.ID]; !again {
			arrived = append(arrived, m.ID)
		}
		got[m.ID] = m
		return nil
	})
	s.await("all messages to arrive", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) >= len(want) })
	mu.Lock()
	defer mu.Unlock()
	for id, w := range want {
		g := got[id]
		if g.Source != w.Source || g.Type != w.Type || g.Key != w.Key || string(g.Body) != string(w.Body) || g.Time.IsZero() {
			s.Errorf("message %q arrived as\n%q at %s, want\n%q at a time", id, g, g.Time, w)
		}
	}
	last := map[string]int{}
	for _, id := range arrived {
		var k, n int
		if _, err := fmt.Sscanf(id, "%d&%d", &k, &n); err != nil {
			s.Fatal(err)
		}
		if key := got[id].Key; key != "" && n < last[key] {
			s.Errorf("message %s of Key %s arrived after number %d", id, key, last[key])
		}
		last[got[id].Key] = max(n, last[got[id].Key])
	}
}

// outboxOutlivesAnOutage emits messages while the broker hangs. A message with a failure that
// counts is parked.
func outboxOutlivesAnOutage(s *shop) {
	if s.queue.Hang == nil {
		s.Skip("this module cannot have its broker hang")
	}
	failed := make(chan error, 1000)
	outbox := outbox.New(s.pool, "shop", failures{s.queue.Publisher, failed})
	outbox.Logger, outbox.Poll, outbox.MaxAttempts = nil, 100*time.Millisecond, 1
	Background(s, outbox.Run)
	var mu sync.Mutex
	got := map[string]bool{}
	s.consume(func(_ context.Context, m broker.Message) error {
		mu.Lock()
		defer mu.Unlock()
		got[m.ID] = true
		return nil
	})
	const messages = 10
	emit := func(first int) {
		err := pgx.BeginFunc(s.Context(), s.pool, func(tx pgx.Tx) error {
			for n := range messages {
				id := fmt.Sprint(first + n)
				if err := outbox.EmitTx(s.Context(), tx, broker.Message{ID: id, Type: "order.paid", Key: "order " + id}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	arrived := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == n }
	}
	emit(0)
	s.await("messages to arrive", arrived(messages))
	resume := s.queue.Hang(s)
	emit(messages)
	for range 2 {
		select {
		case <-failed:
		case <-time.After(longestWait):
			s.Error("nothing fails while the broker hangs")
		}
	}
	resume()
	s.await("the others to arrive", arrived(2*messages))
}

// refusedHoldUpNoOther emits 40 messages that are refused, as those for a full queue are, and others behind them.
func refusedHoldUpNoOther(s *shop) {
	const refused, good = 40, 100
	outbox := outbox.New(s.pool, "shop", refuser{s.queue.Publisher})
	outbox.Logger, outbox.Poll = nil, 100*time.Millisecond
	err := pgx.BeginFunc(s.Context(), s.pool, func(tx pgx.Tx) error {
		for n := range refused + good {
			m := broker.Message{ID: fmt.Sprint("good ", n), Type: "order.paid", Key: fmt.Sprint("order ", n)}
			if n < refused {
				m.ID, m.Type = fmt.Sprint("refused ", n), "refused"
			}
			if err := outbox.EmitTx(s.Context(), tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	Background(s, outbox.Run)
	var mu sync.Mutex
	got := map[string]bool{}
	s.consume(func(_ context.Context, m broker.Message) error {
		mu.Lock()
		defer mu.Unlock()
		got[m.ID] = true
		return nil
	})
	s.await("the others to arrive", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == good })
}

// refuser is a publisher that refuses messages of a type.
type refuser struct{ to broker.Publisher }

func (r refuser) Publish(ctx context.Context, m broker.Message) error {
	if m.Type == "refused" {
		return errors.New("the queue is full")
	}
	return r.to.Publish(ctx, m)
}

// failures is a publisher that says when it fails.
type failures struct {
	to  broker.Publisher
	are chan<- error
}

func (f failures) Publish(ctx context.Context, m broker.Message) error {
	err := f.to.Publish(ctx, m)
	if err != nil {
		select {
		case f.are <- err:
		default:
		}
	}
	return err
}
