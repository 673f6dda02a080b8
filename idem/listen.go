package idem

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

func randomName() string { return rand.Text() }

// tellEvery is how often workers of other processes are told of new events
// while more are coming: NOTIFY makes all commits of a database queue up.
const tellEvery = 5 * time.Millisecond

// tellWorkers wakes workers, here and elsewhere. If it fails they find the
// events when they look.
func (i *Inbox) tellWorkers() {
	a := &i.arrivals
	if !a.unsaid || a.busy() && time.Since(a.told) < tellEvery {
		return
	}
	a.unsaid, a.told = false, time.Now()
	signal(i.wake)
	if i.PollOnly {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishGrace)
	defer cancel()
	_, _ = i.pool.Exec(ctx, `select pg_notify('idem_inbox', $1)`, i.name)
}

// listen wakes workers when other processes store events, until ctx ends. The
// channel is closed when its connection is, too.
func (i *Inbox) listen(ctx context.Context) <-chan struct{} {
	closed := make(chan struct{})
	if i.PollOnly {
		close(closed)
		return closed
	}
	go func() {
		defer close(closed)
		for tries := 1; ctx.Err() == nil; tries++ {
			if err := i.listenOnce(ctx); err != nil && ctx.Err() == nil {
				i.logError(ctx, "webhook workers cannot listen, and look for events every Poll", err)
				pause(ctx, tries)
			}
		}
	}()
	return closed
}

// listenOnce listens until its connection breaks: one beside the pool, which
// would have one less otherwise.
func (i *Inbox) listenOnce(ctx context.Context) error {
	config := i.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishGrace)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "listen idem_inbox"); err != nil {
		return err
	}
	signal(i.wake) // for what was stored before
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.Payload != i.name { // its own are woken for already
			signal(i.wake)
		}
	}
}

func (i *Inbox) logError(ctx context.Context, message string, err error) {
	if i.Logger == nil {
		return
	}
	i.Logger.LogAttrs(ctx, slog.LevelError, message, slog.String("source", i.source.Name()), slog.String("error", explain(err).Error()))
}
