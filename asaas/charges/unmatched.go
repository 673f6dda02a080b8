package charges

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/health/check"
)

// Unmatched finds money that nobody asked for: charges that are paid and match nothing of the application's. It is a
// part for health.New, and so a gauge of both telemetry modules, which have the number of these charges, too.
//
//	unmatched := &charges.Unmatched{DB: pool, Known: `exists (select from orders o
//		where o.id = c.external_reference or o.checkout = c.checkout_session)`}
//	http.Handle("GET /health/webhooks", health.New(inbox, unmatched))
type Unmatched struct {
	DB DB

	// Known is an SQL condition on the row c of asaas_charges, true for a charge that the application has a place for. Never
	// make it of input. Give the columns that it compares an index. A charge that a person has looked at is known,
	// too: or exists (select from looked_at l where l.charge = c.id).
	Known string

	mu   sync.Mutex
	at   time.Time // of the last look
	last check.Result
}

// List returns the newest of them, n at most.
func (u *Unmatched) List(ctx context.Context, n int) ([]Charge, error) {
	if u.Known == "" {
		return nil, errNoKnown
	}
	return list(ctx, u.DB, `where `+u.unknown()+` order by at desc, id limit $1`, n)
}

// Count returns how many there are.
func (u *Unmatched) Count(ctx context.Context) (n int64, err error) {
	if u.Known == "" {
		return 0, errNoKnown
	}
	if n, err = one[int64](ctx, u.DB, `select count(*) from asaas_charges c where `+u.unknown()); err != nil {
		return 0, fmt.Errorf("asaas/charges: counting unmatched charges: %w", err)
	}
	return n, nil
}

func (u *Unmatched) unknown() string { return `paid > 0 and (` + u.Known + `) is not true` }

var errNoKnown = errors.New("asaas/charges: Unmatched has no Known: give it the condition for a charge that the application has a place for")

// looksApart is the time between two looks: the query reads all paid charges.
const looksApart = 5 * time.Minute

// Examine implements a part of package health: the check unmatched fails while there is one. It asks the database every five
// minutes. A query that takes longer than the limit passes, and says so; one that Postgres refuses fails: its SQL is wrong, or a right is missing.
func (u *Unmatched) Examine(ctx context.Context, limits check.Limits) []check.Result {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at.IsZero() || time.Since(u.at) >= looksApart {
		u.last, u.at = examine(ctx, limits, "unmatched", "correct Known, or grant its tables", "give the columns of Known an index", u.look), time.Now()
	}
	return []check.Result{u.last}
}

func (u *Unmatched) look(ctx context.Context) (bad int64, says string, err error) {
	n, err := u.Count(ctx)
	if err != nil || n == 0 {
		return 0, "each paid charge matches something of the application's", err
	}
	newest, err := u.List(ctx, 1)
	if err != nil || len(newest) == 0 {
		return 0, "the last one was matched just now", err
	}
	return n, fmt.Sprintf("%d paid charges match nothing of the application's, the newest is %s: list them with asaas-queue unmatched, "+
		"and match or give back each", n, newest[0].ID), nil
}
