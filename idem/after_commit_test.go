package idem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func TestAfterCommitRunsOnceTheWorkIsVisible(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1)) // the hook gets the connection, so it must be free
	seen := 0
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		idem.AfterCommit(ctx, func(ctx context.Context) {
			if err := s.pool.QueryRow(ctx, `select count(*) from effects`).Scan(&seen); err != nil {
				t.Error(err)
			}
		})
		return pay(ctx, tx, n)
	})
	s.wantAnswer(paid("e1"), http.StatusOK)
	if seen != 1 {
		t.Errorf("the hook saw %d effects, want 1", seen)
	}
}

func TestAfterCommitRunsInOrderAndNotForWhatWasRolledBack(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	var ran []string
	runs := 0
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		runs++
		for _, name := range []string{"first", "second"} {
			if runs == 1 {
				name += " of the run that failed"
			}
			idem.AfterCommit(ctx, func(context.Context) { ran = append(ran, name) })
		}
		if runs == 1 {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantAnswer(paid("e1"), http.StatusOK)
	if diff := cmp.Diff([]string{"first", "second"}, ran); diff != "" {
		t.Error("hooks that ran (-want +got):\n" + diff)
	}
}

func TestHookThatFailsDoesNotFailTheEvent(t *testing.T) {
	t.Parallel()
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	for name, hook := range map[string]func(context.Context){
		"panics":        func(context.Context) { panic("no cache") },
		"never returns": func(context.Context) { <-forever },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.processor.Timeout, s.processor.ParkAfter = 500*time.Millisecond, 1000
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				idem.AfterCommit(ctx, hook)
				return pay(ctx, tx, n)
			})
			status, _ := s.deliver(paid("e1"))
			for status == http.StatusServiceUnavailable { // the time is short on a busy machine
				status, _ = s.deliver(paid("e1"))
			}
			if status != http.StatusOK {
				t.Errorf("answered %d, want 200", status)
			}
			s.wantEffects(1)
			if !strings.Contains(s.logged(), "AfterCommit function failed") {
				t.Error("the log does not tell:\n" + s.logged())
			}
		})
	}
}

func TestAfterCommitOutsideOfAHandlerPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("AfterCommit accepted a hook that would never run")
		}
	}()
	idem.AfterCommit(t.Context(), func(context.Context) {})
}

func TestAfterCommitUnderDispatchPanics(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	idem.Handle(&r, "paid", func(ctx context.Context, _ pgx.Tx, _ *note) error {
		idem.AfterCommit(ctx, func(context.Context) {})
		return nil
	})
	defer func() {
		if recover() == nil {
			t.Error("AfterCommit accepted a hook although nobody knows when the caller commits")
		}
	}()
	_ = idem.Dispatch(t.Context(), nil, &r, idem.Event{Type: "paid", Payload: []byte(`{}`)})
}

func TestHandlerKnowsItsEvent(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		e, ok := idem.EventFrom(ctx)
		want := idem.Event{Source: "notes", Scope: "a", ID: "e1", Type: "paid", Key: "o1", Payload: []byte(paid("e1"))}
		if diff := cmp.Diff(want, e); !ok || diff != "" {
			t.Error("EventFrom (-want +got):\n" + diff)
		}
		return nil
	})
	if status, _, err := s.post(t.Context(), paid("e1"), map[string]string{"account": "a"}); status != 200 || err != nil {
		t.Error(status, err)
	}
	if _, ok := idem.EventFrom(t.Context()); ok {
		t.Error("there is an event outside of a handler")
	}
}
