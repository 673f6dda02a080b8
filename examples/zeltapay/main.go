// Zeltapay receives the webhooks of Zelta Pay, sets each order to the sum of its payments, and ships it
// once that reaches its total. docs/first-event-zeltapay.md runs it step by step.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/zeltapay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	must(err)
	must(idem.Migrate(ctx, pool)) // the tables of idem
	events := zeltapay.NewDispatcher(os.Getenv("ZELTAPAY_WEBHOOK_SECRET"))
	events.OnPaymentSuccess(paid)
	inbox := idem.NewInbox(pool, events)
	parts := []idem.Part{inbox}
	if key := os.Getenv("ZELTAPAY_API_KEY"); key != "" {
		client, err := zeltapay.NewClient(key)
		must(err)
		parts = append(parts, &daily{client, pool}) // books payments whose events never came
	}
	http.Handle("POST /webhooks/zeltapay", inbox)
	http.Handle("GET /health/webhooks", health.New(inbox))
	must(idem.Serve(ctx, &http.Server{Addr: ":8080"}, parts...)) // until Ctrl-C or SIGTERM; prunes daily
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// paid books a payment. It is right in any order of events.
func paid(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
	event, _ := idem.EventFrom(ctx)
	cents, _ := e.Amount() // an event without one is parked, and does not come here
	id := cmp.Or(e.TransactionID(), event.ID)
	p := payment{link: e.LinkID(), saidBy: "flat", id: id, cents: cents}
	if _, nested := e.PaymentLink.Get(); nested {
		p.saidBy = "nested"
	}
	var named bool
	// Your program put the order's id there when it made the link.
	p.order, named = e.LinkMetadata().String("orderId")
	if !named || p.link == "" || cmp.Or(e.Currency(), "USD") != "USD" {
		// Parked: health turns red.
		return idem.NoRetry(fmt.Errorf("link %q: no order, or not in USD", p.link))
	}
	return p.book(ctx, tx)
}

// payment is a row of the table payments. Up to three sources say that a link was paid: an
// event in either of Zelta Pay's two layouts, and the list of completed links. Their ids of
// one payment differ.
type payment struct {
	order, link, saidBy, id string
	cents                   zeltapay.Cents
}

var errNoOrder = errors.New("its order is not stored")

// book stores a payment, sets its order to the sum of its payments, and ships the order if
// that is enough.
func (p payment) book(ctx context.Context, tx pgx.Tx) error {
	// The lock comes first, in a statement of its own: then the sum has what other
	// transactions have committed.
	locked, err := tx.Exec(ctx, `select from orders where id = $1 for update`, p.order)
	if err == nil && locked.RowsAffected() == 0 {
		// Tried again, then parked: health turns red.
		err = fmt.Errorf("link %s: %w", p.link, errNoOrder)
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		insert into payments (order_id, link, said_by, id, cents)
		values ($1, $2, $3, $4, $5) on conflict do nothing`,
		p.order, p.link, p.saidBy, p.id, p.cents); err != nil {
		return err
	}
	// Of each link one source counts. Only the flat layout has the amount that was paid;
	// the others have the link's.
	_, err = tx.Exec(ctx, `
		with summed as (
			update orders set paid = (select sum(cents) from (
				select coalesce(
					sum(cents) filter (where said_by = 'flat'),
					sum(cents) filter (where said_by = 'nested'),
					sum(cents)) as cents
				from payments where order_id = $1 group by link) as links)
			where id = $1 returning id, paid, total)
		insert into shipments (order_id)
		select id from summed where paid >= total on conflict do nothing`, p.order)
	return err
}

// daily reads the list of completed links once a day, and books those of which no event has come.
type daily struct {
	client *zeltapay.Client
	pool   *pgxpool.Pool
}

// Run is called by idem.Serve.
func (d *daily) Run(ctx context.Context) error {
	for {
		pause := 24 * time.Hour
		if err := d.read(ctx); err != nil && ctx.Err() == nil {
			pause = 10 * time.Minute
			slog.ErrorContext(ctx, "the completed links could not be read", "again_in", pause, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *daily) read(ctx context.Context) error {
	for link, err := range d.client.Completed(ctx) {
		if err != nil {
			return err
		}
		if at, err := link.CompletedAt.Time(); err == nil && time.Since(at) < time.Hour {
			continue // its event may be on its way
		}
		switch err := d.look(ctx, link); {
		case errors.Is(err, errNoOrder):
			slog.ErrorContext(ctx, "a link is paid, and not booked", "link", link.ID, "cents", link.Amount, "error", err)
		case err != nil:
			return err
		}
	}
	return nil
}

// look books a link of which no event has come, and names it.
func (d *daily) look(ctx context.Context, link *zeltapay.Link) error {
	var known bool
	err := d.pool.QueryRow(ctx, `select exists (select from payments where link = $1)`, link.ID).Scan(&known)
	if err != nil || known {
		return err
	}
	order, _ := link.Metadata.String("orderId")
	p := payment{order: order, link: link.ID, saidBy: "list", id: link.ID, cents: link.Amount}
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return p.book(ctx, tx) })
	if err == nil {
		slog.WarnContext(ctx, "a link is paid, and its event never came: replay it from the dead-letter queue, which keeps it for 30 days",
			"link", p.link, "order", order, "cents", p.cents, "paid_at", link.CompletedAt)
	}
	return err
}
