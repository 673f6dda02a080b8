package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Notifier tells somebody when a check of a [Health] fails, and when that is over: by an e-mail, or in a chat. Run it
// in every process:
//
//	healthy := health.New(inbox)
//	http.Handle("GET /health/webhooks", healthy)
//	err := idem.Serve(ctx, server, inbox, &health.Notifier{Health: healthy, DB: pool, Notify: mail})
//
// It replaces no monitor from outside: when no process runs, nobody tells. Have a monitor on another host ask for the
// health page.
//
// A Notifier looks at health every 15 seconds. It tells that a check fails once it has failed for a minute, and again
// after each day on which it still fails. It tells that this is over once no process has seen the check fail for five
// minutes: a check that comes and goes is told once. Warnings are not told, nor a check that fails because of another
// one: with Postgres down, only the check postgres is told.
//
// One of all processes that share a database tells. It reserves the notice in Postgres for a minute, calls Notify, and
// records that somebody was told. If Notify fails or the process dies, the next process tells after that minute. So a
// notice is told at least once, and may be told twice.
//
// While Postgres does not answer, or its table idem_notices is missing, each process tells by itself, by the same
// rules. Once Postgres answers again, one of them tells that it is over. A process that ends before that forgets what
// it has told alone.
type Notifier struct {
	// Health is asked what to tell. It must be set. Programs that share a database share the notices of checks with the
	// same source and name, and should tell the same person.
	Health *Health

	// DB is the pool on the database of the events; nil has each process tell by itself.
	DB *pgxpool.Pool

	// Notify tells somebody of a check that fails, or, if r.Healthy is true, that it does no more. It must be set. It gets
	// 30 seconds, and should end with ctx. It is called once at a time, and not again before it has returned. An error
	// or a panic is logged, and the notice is told again after a minute.
	//
	// r has no secrets, and the only ids in it are those of the health page: see the package comment.
	Notify func(ctx context.Context, r check.Result) error

	// Logger gets a line for each notice that could not be told. Default: slog.Default().
	Logger *slog.Logger

	book    notebook
	running <-chan error // of a Notify that has not returned
}

const (
	looks      = 15 * time.Second // the pause between two looks
	notifyTime = store.NoticeTime / 2
)

// Run looks and tells until ctx ends, and returns nil then. [idem.Serve] calls it.
func (n *Notifier) Run(ctx context.Context) error {
	if n.Health == nil || n.Notify == nil {
		return errors.New("health: a Notifier needs a Health and a Notify: set them")
	}
	for began := time.Now(); ; {
		n.look(ctx, time.Since(began) >= quiet)
		select {
		case <-time.After(looks):
		case <-ctx.Done():
			return nil
		}
	}
}

// look looks at health, and tells what is due. settled is as in sight.due.
func (n *Notifier) look(ctx context.Context, settled bool) {
	s, ok := n.see(ctx)
	if !ok {
		return
	}
	alone := n.book.alone
	notices, now, err := n.book.write(ctx, n.DB, s)
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil && !alone:
		n.log(ctx, slog.LevelWarn, "webhook health checks are told by each process by itself: Postgres does not say what others have told",
			slog.String("error", store.Explain(err).Error()))
	case err == nil && alone && n.DB != nil:
		n.log(ctx, slog.LevelInfo, "webhook health checks are told by one process again")
	}
	for _, d := range s.due(notices, now, settled) {
		if err := n.tell(ctx, d); err != nil { // others would most likely fail as well
			n.log(ctx, slog.LevelError, "webhook health check could not be told: it is told again after a minute",
				slog.String("source", d.Source), slog.String("check", d.Name), slog.String("error", err.Error()))
			return
		}
	}
}

// see asks Health. ok is false if ctx has ended.
func (n *Notifier) see(ctx context.Context) (s sight, ok bool) {
	seen := make(chan sight, 1)
	go func() { seen <- newSight(n.Health.Report().Checks, n.Health.answering()) }()
	select {
	case s = <-seen:
		return s, true
	case <-ctx.Done():
		return nil, false
	}
}

// tell tells a notice, unless another process does.
func (n *Notifier) tell(ctx context.Context, d due) error {
	if n.running != nil {
		select {
		case <-n.running:
			n.running = nil
		default:
			return nil // it is logged that it hangs; another process may tell
		}
	}
	reserved, ok, err := n.book.reserve(ctx, n.DB, d.Notice)
	if err != nil {
		return fmt.Errorf("reserving it in Postgres: %w", store.Explain(err))
	}
	if !ok {
		return nil
	}
	if err := n.call(ctx, d.result); err != nil {
		return err
	}
	if err := n.book.confirm(context.WithoutCancel(ctx), n.DB, reserved, d.result.Healthy); err != nil {
		return fmt.Errorf("it was told, and Postgres could not note that: %w", store.Explain(err))
	}
	return nil
}

// errHangs is the error of a Notify that does not return.
var errHangs = errors.New("the function Notify has not returned, although its context has ended: until it does, this process tells nothing")

// call calls Notify.
func (n *Notifier) call(ctx context.Context, r check.Result) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	result := pgtx.Start(func() error { return n.Notify(ctx, r) })
	var err error
	select {
	case err = <-result:
	case <-ctx.Done():
		select {
		case err = <-result:
		case <-time.After(time.Second):
			n.running, err = result, errHangs
		}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // the address of a chat's webhook is a secret
		err = wrapped.Err
	}
	return err
}

func (n *Notifier) log(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	_ = pgtx.Protect(func() error { cmp.Or(n.Logger, slog.Default()).LogAttrs(ctx, level, message, attrs...); return nil })
}
