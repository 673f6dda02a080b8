package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// holdings is the content of the shop's database.
type holdings struct {
	orders []order
	events []eventCounts
}

// order is an order and the money that is booked for it. The one without an id
// is the money without an order.
type order struct {
	id       string
	total    asaas.Money
	currency string
	state    string
	booked   asaas.Money
	entries  string // their numbers in the ledger
}

// eventCounts is the number of a provider's events in each state.
type eventCounts struct {
	source                           string
	done, pending, unhandled, failed int64
	kept                             string // the types of those that are not done
}

func (s *shop) read(ctx context.Context) (held holdings, err error) {
	if held.orders, err = s.readOrders(ctx); err != nil {
		return holdings{}, fmt.Errorf("reading the orders: %w", err)
	}
	for _, of := range []struct {
		source string
		inbox  *idem.Inbox
	}{{"asaas", s.asaas}, {"zeltapay", s.zeltapay}} {
		e, err := s.readEvents(ctx, of.source, of.inbox)
		if err != nil {
			return holdings{}, fmt.Errorf("reading the events: %w", err)
		}
		held.events = append(held.events, e)
	}
	return held, nil
}

func (s *shop) readOrders(ctx context.Context) ([]order, error) {
	const query = `
select coalesce(o.id, e.order_id, ''), coalesce(o.total, 0), coalesce(o.currency, e.currency),
	case when o.refunded_at is not null then 'refunded'
		when o.paid_at is not null then 'paid'
		when o.overdue_at is not null then 'overdue'
		when o.id is not null then 'open'
		else 'not asked for' end,
	coalesce(sum(e.amount), 0), coalesce(string_agg(e.number::text, ', ' order by e.number), '')
from orders o full join entries e on e.order_id = o.id
group by o.id, e.order_id, coalesce(o.currency, e.currency)
order by o.id, e.order_id`
	rows, err := s.pool.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o order, err error) {
		err = row.Scan(&o.id, &o.total, &o.currency, &o.state, &o.booked, &o.entries)
		return o, err
	})
}

func (s *shop) readEvents(ctx context.Context, source string, i *idem.Inbox) (eventCounts, error) {
	const query = `
select count(*) filter (where state = 'done'), coalesce(string_agg(type, ', ' order by type) filter (where state <> 'done'), '')
from idem_events where starts_with(event, $1 || '/')`
	open, err := i.Stats(ctx)
	if err != nil {
		return eventCounts{}, err
	}
	e := eventCounts{source: source, pending: open.Pending.Events, unhandled: open.Unhandled.Events, failed: open.Parked.Events}
	err = s.pool.QueryRow(ctx, query, source).Scan(&e.done, &e.kept)
	return e, err
}

func (held holdings) print(out io.Writer) {
	fmt.Fprintf(out, "%-8s  %11s  %-13s  %11s  %s\n", "ORDER", "TOTAL", "STATE", "BOOKED", "ENTRIES")
	for _, o := range held.orders {
		fmt.Fprintf(out, "%-8s  %11s  %-13s  %11s  %s\n",
			cmp.Or(o.id, "none"), o.in(o.total), o.state, o.in(o.booked), cmp.Or(o.entries, "-"))
	}
	fmt.Fprintf(out, "\n%-8s  %4s  %8s  %6s  %9s  %s\n", "EVENTS", "DONE", "PENDING", "FAILED", "UNHANDLED", "KEPT FOR A REPLAY")
	for _, e := range held.events {
		fmt.Fprintf(out, "%-8s  %4d  %8d  %6d  %9d  %s\n", e.source, e.done, e.pending, e.failed, e.unhandled, cmp.Or(e.kept, "-"))
	}
}

// in is an amount in the order's currency, or a dash.
func (o order) in(amount asaas.Money) string {
	if amount.IsZero() {
		return "-"
	}
	return amount.String() + " " + o.currency
}

// compare returns how the holdings differ from those that should be.
func (held holdings) compare(should holdings) error {
	return errors.Join(differences(held.orders, should.orders), differences(held.events, should.events))
}

func differences[T interface {
	comparable
	fmt.Stringer
}](held, should []T) error {
	var wrong []error
	for _, h := range held {
		if !slices.Contains(should, h) {
			wrong = append(wrong, fmt.Errorf("the database must not hold %s", h))
		}
	}
	for _, s := range should {
		if !slices.Contains(held, s) {
			wrong = append(wrong, fmt.Errorf("the database must hold %s", s))
		}
	}
	return errors.Join(wrong...)
}

func (o order) String() string {
	return fmt.Sprintf("order %q of %s %s, %s, with %s booked in entries [%s]", o.id, o.total, o.currency, o.state, o.booked, o.entries)
}

func (e eventCounts) String() string {
	return fmt.Sprintf("%d done, %d pending, %d failed and %d unhandled events of %s [%s]", e.done, e.pending, e.failed, e.unhandled, e.source, e.kept)
}
