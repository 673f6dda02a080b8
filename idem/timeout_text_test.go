package idem_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// "timeout: context deadline exceeded" is no help to a person.
func TestErrorOfATimeoutSaysWhatTookHowLongAndWhatToDo(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, c := range map[string]struct {
		handler func(context.Context, pgx.Tx, *note) error
		says    []string
	}{
		"a slow query": {
			func(ctx context.Context, tx pgx.Tx, _ *note) error {
				_, err := tx.Exec(ctx, `select pg_sleep(60)`)
				return err
			},
			[]string{"the time of the handler, Timeout, was over after ", "s: see what it waited for, a lock or a slow query for example, or raise Timeout: "},
		},
		"a request with the context": {
			func(ctx context.Context, _ pgx.Tx, _ *note) error { <-ctx.Done(); return ctx.Err() },
			[]string{"the time of the handler, Timeout, was over after ", "or raise Timeout: "},
		},
		"what ignores its context": {
			func(context.Context, pgx.Tx, *note) error { <-hang; return nil },
			[]string{"the handler did not return in time: after ", "what it waits for does not end with its context"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.on(c.handler)
			s.processor.Timeout = 2 * time.Second // which it has to begin in
			s.processor.ParkAfter = 1
			s.wantAnswer(paid("e1"), http.StatusOK)
			var said string
			for _, e := range s.listed(idem.Filter{States: []idem.State{idem.StateParked}}) {
				said = e.LastError
			}
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("its error is %q, want it to say %q", said, part)
				}
			}
		})
	}
}
