// Package notify wakes other processes with LISTEN and NOTIFY. A notification may be lost: a listener also
// looks from time to time.
package notify

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// interval is the least time between two notifications of a Sender: Postgres lets transactions
// that notify commit one after the other.
const interval = 10 * time.Millisecond

// timeout bounds the waits of a Sender and a listener for Postgres.
const timeout = 3 * time.Second

// Sender notifies the listeners of a channel.
type Sender struct {
	pool    *pgxpool.Pool
	channel string

	mu      sync.Mutex
	wanted  bool // since the last notification
	sending bool
}

// NewSender returns a Sender for a channel.
func NewSender(pool *pgxpool.Pool, channel string) *Sender {
	return &Sender{pool: pool, channel: channel}
}

// Send notifies the listeners soon, and does not wait.
func (s *Sender) Send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
	if !s.sending {
		s.sending = true
		go s.send()
	}
}

func (s *Sender) send() {
	for s.take() {
		s.notify()
		time.Sleep(interval)
	}
}

func (s *Sender) notify() {
	defer func() { _ = recover() }() // hooks of the pool are the application's; listeners also look by themselves
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, _ = s.pool.Exec(ctx, `select pg_notify($1, '')`, s.channel)
}

// take reports whether a notification is wanted. If none is, sending ends.
func (s *Sender) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.wanted
	s.wanted, s.sending = false, wanted
	return wanted
}

// Listen calls wake once it listens, and for each notification of channel, until ctx ends or the connection
// breaks. It calls sign immediately and then at the interval every. Postgres must answer sign in time: a
// network that has forgotten the connection reports nothing. With channel "" Listen does not listen, and only
// calls sign.
//
// The connection is not one of the pool: see [pgtx.Connect].
func Listen(
	ctx context.Context, pool *pgxpool.Pool, channel string, wake func(), every time.Duration, sign func(context.Context, *pgx.Conn) error,
) error {
	conn, err := connect(ctx, pool)
	if err != nil {
		return err
	}
	defer pgtx.Disconnect(conn)
	if channel != "" {
		err := answer(ctx, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize())
			return err
		})
		if err != nil {
			return err
		}
	}
	wake() // for events that were stored before
	for {
		// Postgres may execute a sign that was cut off later than all that comes after Listen.
		if err := answer(context.WithoutCancel(ctx), func(ctx context.Context) error { return sign(ctx, conn) }); err != nil {
			return err
		}
		if err := wait(ctx, conn, wake, every); err != nil {
			return err
		}
	}
}

// wait calls wake for each notification that comes within d.
func wait(ctx context.Context, conn *pgx.Conn, wake func(), d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		_, err := conn.WaitForNotification(waiting)
		switch {
		case err == nil:
			wake()
		case ctx.Err() != nil || waiting.Err() == nil:
			return err
		default:
			return nil
		}
	}
}

func connect(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return pgtx.Connect(ctx, pool)
}

// answer calls f, with a statement that Postgres must answer in time.
func answer(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}
