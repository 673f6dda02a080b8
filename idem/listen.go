package idem

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// news tells workers of other processes of new events.
type news struct {
	mu             sync.Mutex
	fresh, telling bool
}

// tellEvery is how long news are gathered while more are coming: NOTIFY makes
// the commits of a database queue up.
const tellEvery = 5 * time.Millisecond

// tellWorkers wakes workers, here and elsewhere.
func (i *Inbox) tellWorkers() {
	signal(i.wake)
	if i.PollOnly {
		return
	}
	i.news.mu.Lock()
	defer i.news.mu.Unlock()
	i.news.fresh = true
	if !i.news.telling {
		i.news.telling = true
		go i.tell()
	}
}

// tell is not waited for. What it fails to tell, workers find when they look.
func (i *Inbox) tell() {
	for i.news.take() {
		ctx, cancel := context.WithTimeout(context.Background(), finishGrace)
		_, _ = i.pool.Exec(ctx, `select pg_notify('idem_inbox', $1)`, i.name)
		cancel()
		rest(context.Background(), tellEvery)
	}
}

// take tells whether there is news; none ends the telling.
func (n *news) take() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := n.fresh
	n.fresh, n.telling = false, fresh
	return fresh
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
