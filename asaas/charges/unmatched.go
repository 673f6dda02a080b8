package charges

import (
	"context"
	"fmt"
	"strings"
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

	// Scope is the account whose charges are listed. With several accounts, "" lists the charges of all: then Known has
	// to compare c.scope, because two accounts may have the same references.
	Scope string

	// Known is an SQL condition on the row c of asaas_charges, true for a charge that the application has a place for. Never
	// make it of input. Give the columns that it compares an index. A charge that a person has looked at is known,
	// too: or exists (select from looked_at l where l.charge = c.id).
	Known string

	sometimes sometimes
}

// List returns the newest of them, n at most.
func (u *Unmatched) List(ctx context.Context, n int) ([]Charge, error) {
	if err := u.check(ctx); err != nil {
		return nil, err
	}
	return list(ctx, u.DB, u.unknown()+` order by at desc, id limit $3`, u.Scope, u.ofAll(), n)
}

// Count returns how many there are.
func (u *Unmatched) Count(ctx context.Context) (n int64, err error) {
	if err := u.check(ctx); err != nil {
		return 0, err
	}
	if n, err = one[int64](ctx, u.DB, `select count(*) from `+named+u.unknown(), u.Scope, u.ofAll()); err != nil {
		return 0, fmt.Errorf("asaas/charges: counting unmatched charges: %w", err)
	}
	return n, nil
}

// check returns an error where Known would take a charge of one account for that of another.
func (u *Unmatched) check(ctx context.Context) error {
	if u.Known == "" {
		return errNoKnown
	}
	if u.Scope != "" {
		return checkScope(ctx, u.DB, u.Scope)
	}
	if strings.Contains(u.Known, "scope") {
		return nil
	}
	scoped, err := one[bool](ctx, u.DB, `select exists (select from asaas_charges_since where scope <> '' and seen is not null)`)
	if err == nil && scoped {
		err = errNoScopeInKnown
	}
	return err
}

// ofAll reports whether the charges of all accounts are looked at.
func (u *Unmatched) ofAll() bool { return u.Scope == "" }

func (u *Unmatched) unknown() string {
	return `where paid > 0 and (scope = $1 or $2) and (` + u.Known + `) is not true`
}

const (
	errNoKnown        settingError = "asaas/charges: Unmatched has no Known: give it the condition for a charge that the application has a place for"
	errNoScopeInKnown settingError = "asaas/charges: the accounts of this database have scopes, and Unmatched has no Scope: set it, or have Known compare c.scope"
)

// looksApart is the time between two looks: the query reads all paid charges, or all orders.
const looksApart = 5 * time.Minute

// sometimes remembers the result of a look.
type sometimes struct {
	mu   sync.Mutex
	at   time.Time // of the last look
	last check.Result
}

func (s *sometimes) look(look func() check.Result) []check.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= looksApart {
		s.last, s.at = look(), time.Now()
	}
	return []check.Result{s.last}
}

// Examine implements a part of package health: the check unmatched fails while there is one. It asks the database every five
// minutes. A query that takes longer than the limit passes, and says so; one that Postgres refuses fails: its SQL is wrong, or a right is missing.
func (u *Unmatched) Examine(ctx context.Context, limits check.Limits) []check.Result {
	return u.sometimes.look(func() check.Result {
		return examine(ctx, limits, "unmatched", "correct Known, or grant its tables", "give the columns of Known an index", u.look)
	})
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
