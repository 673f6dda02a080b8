// Package once makes one charge at Asaas for each order. docs/create-a-charge.md explains it.
package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// Orders is the part of the shop's orders that Charge needs. Store the order before you charge for it.
const Orders = `
create table if not exists orders (
    id       text primary key,    -- the externalReference of its charge
    customer text    not null,    -- cus_…
    total    numeric not null,
    due      date    not null,
    charge   text unique,         -- pay_…; null until it is known
    asked    timestamptz          -- when Asaas was asked for it; null if nothing was made
);`

// Pause is the time from one request to make a charge to the next, if the first one had no clear answer: as long as
// the request may still be on its way, and Asaas's list may not show the charge yet.
const Pause = 5 * time.Minute

// ErrAsked is the error of an order whose charge is being made by another process, or may have been made. Call Charge
// again after Pause.
var ErrAsked = errors.New("the charge may have been made: it is looked for again in some minutes")

// Charge returns the id of the order's charge at Asaas, and makes the charge if there is
// none. Call it again after any error, in any process.
func Charge(
	ctx context.Context, pool *pgxpool.Pool, client *asaas.Client, order string,
) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, Pause/2) // so no request is later than Pause
	defer cancel()
	if id, err = known(ctx, pool, order); id != "" || err != nil {
		return id, err
	}
	// One process goes on from here, until Pause is over.
	const claim = `
		update orders set asked = now()
		where id = $1 and charge is null
			and (asked is null or asked < now() - $2::interval)
		returning asked, customer, total, due::text`
	var asked time.Time
	p := asaas.PaymentCreate{BillingType: asaas.BillingTypeUndefined}
	p.ExternalReference = value.Of(order)
	row := pool.QueryRow(ctx, claim, order, Pause)
	err = row.Scan(&asked, &p.Customer, &p.Value, &p.DueDate)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrAsked
	}
	if err != nil {
		return "", err
	}
	made, err := find(ctx, client, order)
	if err == nil && made == nil {
		made, err = client.CreatePayment(ctx, p)
	}
	switch {
	case mayBeMade(err):
		return "", fmt.Errorf("%w: %w", ErrAsked, err)
	case err != nil: // nothing was made: let the next call ask at once
		const release = `update orders set asked = null where id = $1 and asked = $2`
		_, failed := pool.Exec(context.WithoutCancel(ctx), release, order, asked)
		return "", errors.Join(err, failed)
	case made.Value != p.Value.Or(asaas.Money{}):
		return "", fmt.Errorf("the order %s is %s, and its charge %s is %s: "+
			"remove the charge, or correct the order", order, p.Value, made.ID, made.Value)
	}
	const learn = `update orders set charge = $2 where id = $1`
	_, err = pool.Exec(context.WithoutCancel(ctx), learn, order, made.ID)
	return made.ID, err
}

// mayBeMade reports whether Asaas may have made a charge although there is an error.
func mayBeMade(err error) bool {
	e, ok := errors.AsType[*asaas.APIError](err)
	return ok && e.Op == "CreatePayment" && e.Outcome == asaas.CallUnknown
}

// known returns the charge that the order has, or that an event has brought; "" if there is none yet.
func known(ctx context.Context, pool *pgxpool.Pool, order string) (charge string, err error) {
	const sql = `
		select coalesce(o.charge, c.id, '') from orders o
		left join asaas_charges c on c.external_reference = o.id and not c.deleted
		where o.id = $1 order by c.created limit 1`
	if err = pool.QueryRow(ctx, sql, order).Scan(&charge); errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("the order %s is not stored: store it before you charge for it", order)
	}
	return charge, err
}

// find returns the order's charge as Asaas lists it; nil if there is none.
func find(ctx context.Context, client *asaas.Client, order string) (*asaas.Payment, error) {
	page, err := client.Payments(ctx, asaas.PaymentFilter{ExternalReference: order}, 0)
	if err != nil {
		return nil, err
	}
	switch found := page.Data.Or(nil); len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	default:
		return nil, fmt.Errorf("the order %s has %d charges at Asaas: remove all but one there", order, len(found))
	}
}

// Uncharged returns orders that have waited for their charge for longer than Pause. Call Charge for each, from time to
// time: their processes have died, or had no clear answer.
func Uncharged(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	const sql = `select id from orders where charge is null and asked < now() - $1::interval order by asked limit 100`
	rows, _ := pool.Query(ctx, sql, Pause)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
