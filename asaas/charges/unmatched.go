package charges

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem/health/check"
)

// Unmatched finds money that nobody asked for: charges that are paid and match nothing of the application's. It is a
// part for health.New, and so a gauge of both telemetry modules.
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
		return nil, errors.New("asaas/charges: Unmatched has no Known: give it the condition for a charge that the application has a place for")
	}
	rows, err := u.DB.Query(ctx, `select scope, id, customer, erased, `+columns+`, null::date from asaas_charges c
		where paid > 0 and (`+u.Known+`) is not true order by at desc, id limit $1`, n)
	if err != nil {
		return nil, fmt.Errorf("asaas/charges: listing unmatched charges: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Charge, err error) {
		var since *time.Time
		return c, c.scan(withKey{row, &c}, &since)
	})
	if err != nil {
		return nil, fmt.Errorf("asaas/charges: listing unmatched charges: %w", err)
	}
	return list, nil
}

// withKey is a row that begins with the charge's key.
type withKey struct {
	pgx.Row
	charge *Charge
}

func (r withKey) Scan(rest ...any) error {
	return r.Row.Scan(append([]any{&r.charge.Scope, &r.charge.ID}, rest...)...)
}

const (
	looksApart = 5 * time.Minute // the query reads all paid charges
	most       = 100
)

// Examine implements a part of package health: the check unmatched fails while there is one. It asks the database every five
// minutes. A query that takes longer than the limit passes, and says so; one that Postgres refuses fails: its SQL is wrong, or a right is missing.
func (u *Unmatched) Examine(ctx context.Context, limits check.Limits) []check.Result {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at.IsZero() || time.Since(u.at) >= looksApart {
		u.last, u.at = u.look(ctx, limits.Timeout), time.Now()
	}
	return []check.Result{u.last}
}

func (u *Unmatched) look(ctx context.Context, timeout time.Duration) check.Result {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	list, err := u.List(ctx, most)
	c := check.Result{Source: "asaas", Name: "unmatched", Healthy: true, Cause: err}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && strings.HasPrefix(refused.Code, "42"): // it would pass for ever
		c.Healthy, c.Says = false, "Postgres refuses the query, see the cause: correct Known, or grant its tables"
	case u.Known == "":
		c.Healthy, c.Says = false, "Unmatched has no Known: set it"
	case err != nil:
		c.Says = fmt.Sprintf("not known: the charges could not be read within %s: give the columns of Known an index", timeout)
	case len(list) == 0:
		c.Says = "each paid charge matches something of the application's"
	default:
		number := fmt.Sprint(len(list))
		if len(list) == most {
			number += " or more"
		}
		c.Healthy, c.Says = false, fmt.Sprintf("%s paid charges match nothing of the application's, the newest is %s: list them with charges.Unmatched, "+
			"and match or give back each", number, list[0].ID)
	}
	return c
}
