//go:build long

package idemtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestExactlyOnceInboxFindsTheSameMistakes(t *testing.T) {
	t.Parallel()
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if says := rehearse(t, idemtest.ExactlyOnceInbox, m.handler, m.effects, "evt_1"); !strings.Contains(says, m.inbox) {
				t.Errorf("it says:\n%s\nwant %s", says, m.inbox)
			}
		})
	}
}

func TestExactlyOnceFindsTypicalMistakes(t *testing.T) {
	t.Parallel()
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if says := rehearse(t, idemtest.ExactlyOnce, m.handler, m.effects, "evt_1"); !strings.Contains(says, m.inline) {
				t.Errorf("it says:\n%s\nwant %s", says, m.inline)
			}
		})
	}
}

// Each row is tried in one of the two ways: it takes some seconds.
func TestExactlyOncePassesWhatIsNoMistake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler     handler
		effects     effects
		exactlyOnce function
	}{
		"it writes through tx": {book, inTable, idemtest.ExactlyOnce},
		"its server knows the event's id": {
			ask(func(id string) string { return id }), onServer, idemtest.ExactlyOnce,
		},
		"it ignores an error of tx, which idem sees": {func(ctx context.Context, tx pgx.Tx, _ *world, id string) error {
			_, _ = tx.Exec(ctx, insertEffect, id)
			return nil
		}, inTable, idemtest.ExactlyOnce},
		"it asks to be tried again later, for which nobody waits": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			err := book(ctx, tx, w, id)
			return idem.RetryAt(time.Now().Add(time.Hour), err)
		}, inTable, idemtest.ExactlyOnceInbox},
		"not found: its memory is lost with the process": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			if !w.seen[id] {
				w.seen[id] = true
				return send(ctx, tx, w, id)
			}
			return book(ctx, tx, w, id)
		}, inMails, idemtest.ExactlyOnce},
		"not found: nobody looks at its effects": {send, inTable, idemtest.ExactlyOnce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if says := rehearse(t, c.exactlyOnce, c.handler, c.effects, "evt_1"); says != "" {
				t.Errorf("it says:\n%s\nwant nothing", says)
			}
		})
	}
}

func TestExactlyOnceInboxPassesAZeltaPayHandler(t *testing.T) {
	t.Parallel()
	paymentIsBookedOnce(t)
}

func TestExactlyOnceCutsEveryDelivery(t *testing.T) {
	t.Parallel()
	says := rehearse(t, idemtest.ExactlyOnce, func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
		if id == "evt_2" {
			_, err := w.pool.Exec(ctx, insertEffect, id)
			return err
		}
		return book(ctx, tx, w, id)
	}, inTable, "evt_1", "evt_2")
	if want := `Query of "commit", connection cut before it is sent: 3 effects of 2 events`; strings.Contains(says, "delivery 1") || !strings.Contains(says, want) {
		t.Errorf("it says:\n%s\nwant %s, and nothing about delivery 1", says, want)
	}
}

func TestExactlyOnceInboxCutsTheWorkOnEveryDelivery(t *testing.T) {
	t.Parallel()
	says := rehearse(t, idemtest.ExactlyOnceInbox, func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
		if id == "evt_2" {
			return send(ctx, tx, w, id)
		}
		return book(ctx, tx, w, id)
	}, func(_ context.Context, _ *pgxpool.Pool, w *world) (int, error) { return len(w.mails) + 1, nil }, "evt_1", "evt_2")
	if want := `work on delivery 2, message `; strings.Contains(says, "delivery 1") || !strings.Contains(says, want) {
		t.Errorf("it says:\n%s\nwant %s, and nothing about delivery 1", says, want)
	}
}
