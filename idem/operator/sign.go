package operator

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// ErrStopped is the error of an action that [Operator.Stop] has ended.
var ErrStopped = errors.New("the action was stopped")

// stopped is the cause for which the context of an action ends that somebody stops.
type stopped struct{ by string }

func (s *stopped) Error() string { return "stopped by " + s.by }

func (s *stopped) Is(target error) bool { return target == ErrStopped }

// acting is an action that runs, by its record.
type acting struct {
	pool *pgxpool.Pool
	id   int64
	end  context.CancelCauseFunc // ends the action
}

// signEvery is the interval of an action's signs of life.
const signEvery = 2 * time.Second

// start begins the signs of life of an action. The returned context ends when somebody stops the
// action. stop ends the signs, and returns the cause.
func (a *acting) start(ctx context.Context) (acting context.Context, stop func() error) {
	ctx, a.end = context.WithCancelCause(ctx)
	signing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the action ends after its context
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(signEvery)
		defer every.Stop()
		for {
			select {
			case <-signing.Done():
				return
			case <-every.C:
				a.ask(signing, func(ctx context.Context, db store.DB) (string, error) { return store.SignAction(ctx, db, a.id) })
			}
		}
	}()
	return ctx, func() error {
		cancel()
		<-ended
		cause := context.Cause(ctx)
		a.end(nil)
		if _, ok := errors.AsType[*stopped](cause); ok {
			return cause
		}
		return nil
	}
}

// note records the outcome of the action on an event. A replay goes on without that.
func (a *acting) note(ctx context.Context, rowKey, result string) {
	a.ask(context.WithoutCancel(ctx), func(ctx context.Context, db store.DB) (string, error) {
		return store.NoteOutcome(ctx, db, a.id, rowKey, result)
	})
}

// ask executes a statement that returns the person that has stopped the action, and ends it if there is one.
func (a *acting) ask(ctx context.Context, f func(context.Context, store.DB) (string, error)) {
	by := ""
	err := pgtx.Ask(ctx, a.pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		by, err = f(ctx, conn)
		return err
	})
	if err == nil && by != "" {
		a.end(&stopped{by})
	}
}

// record records what the action changed, in the transaction that changes it. It returns an error
// if somebody has stopped the action.
func (a *acting) record(ctx context.Context, tx store.DB, keys []string, result, each string) error {
	by, err := store.ChangedBy(ctx, tx, a.id, keys, result, each)
	if err == nil && by != "" {
		err = &stopped{by}
		a.end(err)
	}
	return err
}
