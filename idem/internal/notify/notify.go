// Package notify wakes other processes with LISTEN and NOTIFY. A wake-up may be
// lost: who waits for one also looks from time to time.
package notify

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// interval is how often a Sender notifies at most: Postgres lets transactions
// that notify commit one after the other.
const interval = 10 * time.Millisecond

// timeout bounds what a Sender and a listener wait for Postgres.
const timeout = 5 * time.Second

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

// Send wakes the listeners soon. It does not wait for that.
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

// check is how often a listener makes sure that its connection is alive: a
// network that forgot it would tell nothing.
const check = 15 * time.Second

// Listen calls wake for each notification, and once it listens, until ctx ends
// or the connection breaks. The connection is one beside the pool, which would
// have one less otherwise.
func Listen(ctx context.Context, pool *pgxpool.Pool, channel string, wake func()) error {
	conn, err := connect(ctx, pool)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if err := answer(ctx, conn, "listen "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	wake() // for what came before
	for {
		waiting, cancel := context.WithTimeout(ctx, check)
		_, err := conn.WaitForNotification(waiting)
		late := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
			wake()
			continue
		case ctx.Err() != nil || !late:
			return err
		}
		if err := answer(ctx, conn, "select 1"); err != nil {
			return err
		}
	}
}

func connect(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config := pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// answer executes a statement, which Postgres must answer in time.
func answer(ctx context.Context, conn *pgx.Conn, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := conn.Exec(ctx, sql)
	return err
}
