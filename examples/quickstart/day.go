package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const orders = `
insert into orders (id, total, currency) values
	('A-1001', 149.90, 'BRL'), ('A-1002', 1200, 'BRL'), ('A-1003', 59.90, 'BRL'), ('A-1004', 75.50, 'BRL'), ('Z-2002', 25, 'USD')`

// day delivers events to the shop, as Asaas and Zelta Pay do.
type day struct {
	shop *shop
	pool *pgxpool.Pool
	url  string
	out  io.Writer

	failed error // the first failure of the day itself
}

func (d *day) play(ctx context.Context) error {
	// The charges below are of another day, and no other program has booked any: see package charges.
	if err := charges.Filled(ctx, d.pool, "", time.Time{}); err != nil {
		return err
	}
	if _, err := d.pool.Exec(ctx, orders); err != nil {
		return err
	}
	pix, pixCreated := newCharge("A-1001", asaas.BillingTypePix, 14990)
	card, cardCreated := newCharge("A-1002", asaas.BillingTypeCreditCard, 120000)
	returned, _ := newCharge("A-1003", asaas.BillingTypePix, 5990)
	boleto, _ := newCharge("A-1004", asaas.BillingTypeBoleto, 7550)
	unasked, _ := newCharge("", asaas.BillingTypePix, 2990)
	late, _ := newCharge("A-1005", asaas.BillingTypePix, 3000)
	received, confirmed := pix.Received(), card.Confirmed()

	fmt.Fprintf(d.out, line, "EVENT", "DELIVERED", "ANSWER", "EFFECT")
	d.asaas(1, pixCreated, "A-1001", "A-1001")
	d.asaas(10, received, "A-1001", "A-1001, ten at once")
	d.asaas(1, received, "A-1001", "A-1001, once more")
	d.asaas(1, confirmed, "A-1002", "A-1002, a card")
	d.asaas(1, cardCreated, "A-1002", "A-1002, late and out of order")
	d.asaas(1, card.Received(), "A-1002", "A-1002, its money, a month later")
	d.asaas(1, returned.Received(), "A-1003", "A-1003")
	d.asaas(3, boleto.Overdue(), "A-1004", "A-1004, three at once")
	d.asaas(1, asaastest.Event(asaas.EventPaymentBankSlipViewed), "", "of a type that is ignored")
	d.asaas(1, asaastest.Event(asaas.EventTransferDone), "", "of a type without a handler")
	d.deliver(1, received, "A-1001", "A-1001, forged: a guessed token", func() *http.Request {
		return asaastest.Request(d.url+"/webhooks/asaas", "a guess", received)
	})
	d.zeltapay(1, newLink("pl_1", "Z-2001", 4900), "Z-2001", "Z-2001, before its order is stored")

	fmt.Fprint(d.out, "\nAt noon these are not done:\n\n")
	if err := d.table(ctx, `select source, type, state, last_error from idem_event_log where state <> 'done' order by 1, 2`); err != nil {
		return err
	}
	fmt.Fprint(d.out, "\nNow the order Z-2001 is stored, and what failed is tried again.\n\n")
	if _, err := d.pool.Exec(ctx, `insert into orders (id, total, currency) values ('Z-2001', 49, 'USD')`); err != nil {
		return err
	}
	if _, err := d.shop.zeltapay.Requeue(ctx, idem.Filter{States: []idem.State{idem.StatePending}}); err != nil {
		return err
	}
	d.settle(`state = 'pending'`)

	d.zeltapay(1, inSpanish("pl_1", "Z-2001", 4900), "Z-2001", "Z-2001, in the other layout")
	d.zeltapay(10, newLink("pl_2", "Z-2002", 2500), "Z-2002", "Z-2002, ten at once")
	d.zeltapay(1, zeltapaytest.Event(zeltapay.EventPaymentSuccess, zeltapaytest.Set("transaction.isTest", true)), "", "a test: no money moved")
	d.asaas(1, returned.PartiallyRefunded(asaas.Cents(2000)), "A-1003", "A-1003, 20.00 is given back")
	d.asaas(1, card.ChargebackRequested(), "A-1002", "A-1002, the customer disputes it")
	d.asaas(1, unasked.Received(), "", "a Pix that nobody asked for")
	d.asaas(1, late.Received(), "A-1005", "A-1005, before its order is stored")
	if _, err := d.pool.Exec(ctx, `insert into orders (id, total, currency) values ('A-1005', 30, 'BRL')`); err != nil {
		return err
	}
	for _, table := range [][2]string{
		{"At night, the orders", `select id as order, total, paid, currency from orders order by 1`},
		{"Paid, and of no order", `select id as charge, paid from asaas_charges c where paid > 0 and not exists (select from orders o where o.id = c.external_reference)`},
		{"The events", `select source, state, count(*) as events from idem_event_log group by 1, 2 order by 1, 2`},
	} {
		fmt.Fprintf(d.out, "\n%s:\n\n", table[0])
		if err := d.table(ctx, table[1]); err != nil {
			return err
		}
	}
	return d.failed
}

// newCharge returns a charge at Asaas, and the event of its creation.
func newCharge(order string, billing asaas.BillingType, cents int64) (c *asaastest.Charge, created []byte) {
	c = asaastest.NewCharge(billing, asaas.Cents(cents))
	c.Payment.ExternalReference = value.Of(order)
	return c, c.Created()
}

// newLink returns the event of a payment link that was paid, as Zelta Pay's English pages show it.
func newLink(id, order string, cents int) []byte {
	return zeltapaytest.Flat.Event(zeltapay.EventPaymentSuccess, zeltapaytest.Set("paymentLinkId", id),
		zeltapaytest.Set("transaction.amount", cents), zeltapaytest.Set("metadata.orderId", order))
}

// inSpanish returns the same event as the Spanish pages show it.
func inSpanish(id, order string, cents int) []byte {
	return zeltapaytest.Nested.Event(zeltapay.EventPaymentSuccess, zeltapaytest.Set("paymentLink.id", id),
		zeltapaytest.Set("paymentLink.amount", cents), zeltapaytest.Set("paymentLink.metadata.orderId", order))
}

func (d *day) asaas(times int, body []byte, order, about string) {
	d.deliver(times, body, order, about, func() *http.Request { return asaastest.Request(d.url+"/webhooks/asaas", asaasToken, body) })
}

func (d *day) zeltapay(times int, body []byte, order, about string) {
	d.deliver(times, body, order, about, func() *http.Request {
		return zeltapaytest.Request(d.url+"/webhooks/zeltapay", zeltapaySecret, body)
	})
}

// deliver sends a request so many times at once, and prints the answer and what became of the order.
func (d *day) deliver(times int, body []byte, order, about string, request func() *http.Request) {
	e := asaas.Identify(body)
	if e.Type == "" {
		e = zeltapay.Identify(body)
	}
	before, known := d.paid(order), d.state(e.ID)
	var mu sync.Mutex
	var all sync.WaitGroup
	counts := make(map[string]int)
	for range times {
		all.Go(func() {
			said := post(request())
			mu.Lock()
			defer mu.Unlock()
			counts[said]++
		})
	}
	all.Wait()
	d.settle(`state = 'pending' and failures is null`)
	status := strings.Join(slices.Sorted(maps.Keys(counts)), ", ")
	answer := status
	if times > 1 {
		answer = fmt.Sprintf("%d x %s", times, status)
	}
	effect, after, state := "none", d.paid(order), d.state(e.ID)
	switch {
	case status != "200":
		effect = "refused"
	case known != "":
		effect = "none: " + known + " before"
	case before != after:
		effect = "paid " + before + " -> " + after
	case state == "":
		effect = "none: nothing is stored"
	case state != "done":
		effect = state
	}
	fmt.Fprintf(d.out, line, e.Type, about, answer, effect)
}

const line = "%-28s  %-36s  %-8s  %s\n"

// state returns the state of an event, with the first words of why it is not done; "" if it is not stored.
func (d *day) state(id string) string {
	return d.ask(`select coalesce((select state || coalesce(': ' || left(replace(last_error, 'asaas/charges: ', ''), 16) || '...', '')
		from idem_event_log where event_id = $1), '')`, id)
}

// paid returns what an order has got.
func (d *day) paid(order string) string {
	return d.ask(`select coalesce((select paid::text from orders where id = $1), '')`, order)
}

func (d *day) ask(query, arg string) (text string) {
	err := d.pool.QueryRow(context.Background(), query, arg).Scan(&text)
	d.failed = cmp.Or(d.failed, err)
	return text
}

// post returns the status of the answer to a request.
func post(r *http.Request) string {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	_ = answer.Body.Close()
	return strconv.Itoa(answer.StatusCode)
}

// settle waits until the shop's workers have left no event in a condition.
func (d *day) settle(condition string) {
	for d.failed == nil && d.ask(`select count(*)::text from idem_event_log where $1 = '' and `+condition, "") != "0" {
		time.Sleep(5 * time.Millisecond)
	}
}

// table prints the result of a query.
func (d *day) table(ctx context.Context, query string) error {
	rows, err := d.pool.Query(ctx, query, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return err
	}
	defer rows.Close()
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	for n, column := range rows.FieldDescriptions() {
		fmt.Fprint(w, strings.Repeat("\t", min(n, 1)), strings.ToUpper(column.Name))
	}
	for rows.Next() {
		fmt.Fprintf(w, "\n%s", bytes.Join(rows.RawValues(), []byte("\t")))
	}
	fmt.Fprintln(w)
	return errors.Join(rows.Err(), w.Flush())
}
