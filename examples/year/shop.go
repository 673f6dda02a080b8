package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

// Everybody can read these. An application takes its own from the environment.
const (
	oldToken    = "year-webhook-token-of-spring"
	newToken    = "year-webhook-token-of-summer"
	branchToken = "year-webhook-token-of-the-branch"
	branch      = "branch" // the second account's scope
)

// shop is the application. It is deployed behind one address.
type shop struct {
	pool    *pgxpool.Pool
	books   books // where check looks
	version atomic.Pointer[idem.Inbox]
	another func() *idem.Inbox // of the same version, that has looked at nothing yet
	down    atomic.Bool        // its server is gone
}

// books is the pool, or a transaction.
type books interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

//go:embed shop.sql
var tables string

func newShop(ctx context.Context, pool *pgxpool.Pool) (*shop, error) {
	if err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return nil, fmt.Errorf("making the shop's tables: %w", err)
	}
	return &shop{pool: pool, books: pool}, nil
}

// version is a deployed version.
type version struct {
	tokens []string
	branch bool // it knows the second account
	broken bool // its handlers fail
}

func (s *shop) deploy(v version) {
	events := asaas.NewDispatcher(v.tokens...)
	events.AllowFrom = asaas.OfficialAddresses() // so that health can tell Asaas's own deliveries from a stranger's
	if v.branch {
		events.Accounts = func(*http.Request) ([]idem.Credentials, error) {
			return []idem.Credentials{{Scope: branch, Secrets: []string{branchToken}}}, nil
		}
	}
	handle := func(h idem.Handler[*asaas.PaymentEvent]) idem.Handler[*asaas.PaymentEvent] {
		if v.broken {
			return func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
				return errors.New("relation \"stock\" does not exist")
			}
		}
		return h
	}
	events.OnPaymentConfirmed(handle(paid))
	events.OnPaymentReceived(handle(received))
	events.OnPaymentRefunded(handle(refunded))
	s.another = func() *idem.Inbox {
		inbox := idem.NewInbox(s.pool, events)
		inbox.PollOnly = true
		inbox.Logger = slog.New(slog.DiscardHandler) // the story says it
		return inbox
	}
	s.version.Store(s.another())
}

// Examine reports the process's own knowledge, and reads the stored events as they are
// now: health does that seldom, and here an hour takes milliseconds.
func (s *shop) Examine(ctx context.Context, limits idem.Limits) []idem.Check {
	ofProcess := func(c idem.Check) bool { return slices.Contains([]string{"deliveries", "refused", "handlers"}, c.Name) }
	stored := health.Of(s.another()).Examine(ctx, limits)
	return append(s.version.Load().Examine(ctx, limits), slices.DeleteFunc(stored, ofProcess)...)
}

// ServeHTTP implements [http.Handler].
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.down.Load() {
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	}
	s.version.Load().ServeHTTP(w, r)
}

// paid, received and refunded are right in any order, and when they run again: each order
// has a time for each state, and the ledger a row for each fact. A payment with a chargeback that
// was won is received a second time, as another event: that is the same fact.

func paid(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	return update(ctx, tx, e.Payment, `update orders set paid_at = coalesce(paid_at, now()) where id = $1`)
}

func received(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	if err := book(ctx, tx, e.Payment.ID, "received", e.Payment.Value); err != nil {
		return err
	}
	return paid(ctx, tx, e)
}

func refunded(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	if err := book(ctx, tx, e.Payment.ID, "refunded", e.Payment.Value.Neg()); err != nil {
		return err
	}
	return update(ctx, tx, e.Payment, `update orders set refunded_at = coalesce(refunded_at, now()) where id = $1`)
}

func book(ctx context.Context, tx pgx.Tx, charge, fact string, amount asaas.Money) error {
	_, err := tx.Exec(ctx, `insert into ledger values ($1, $2, $3) on conflict do nothing`, charge, fact, amount)
	return err
}

// update finds the order by the id that the shop sent as externalReference when it made the
// charge.
func update(ctx context.Context, tx pgx.Tx, p asaas.Payment, sql string) error {
	order := p.ExternalReference.Or("")
	if order == "" {
		return nil // a charge made by hand in Asaas, not one of the shop's
	}
	updated, err := tx.Exec(ctx, sql, order)
	if err == nil && updated.RowsAffected() == 0 {
		err = fmt.Errorf("the order of charge %s is not stored", p.ID)
	}
	return err
}

// repair does the work of the event that never came. It is keyed as the handlers
// are, so that an event that comes late meets it.
func (s *shop) repair(ctx context.Context, d *asaas.Difference) error {
	if d.State != "RECEIVED" {
		return fmt.Errorf("%s is %s: look at it by hand", d.Charge, d.State)
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := book(ctx, tx, d.Charge, "received", d.Value); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update orders set paid_at = coalesce(paid_at, now()) where id = $1`, d.ExternalReference)
		return err
	})
}

// order stores an order, as the shop's own page does.
func (s *shop) order(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `insert into orders (id) values ($1)`, id)
	return err
}

// pass makes all that waits older: the database's time is not the story's.
func (s *shop) pass(ctx context.Context, d time.Duration) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local synchronous_commit = off`); err != nil { // no answer relies on it
			return err
		}
		if _, err := tx.Exec(ctx, `update idem_events set received_at = received_at - $1::interval`, d); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update idem_payloads set received_at = received_at - $1::interval, due_at = due_at - $1::interval`, d)
		return err
	})
}
