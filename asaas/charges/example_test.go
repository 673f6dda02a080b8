package charges_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

// An order of R$ 200.00 is paid by two boletos, the first one late and with interest. It ships once.
func ExampleOrders() {
	pool, end := exampleTables(`create table orders (id text primary key, checkout text unique, total numeric, paid numeric, settled numeric);
		create table shipments (order_id text primary key);
		insert into orders values ('order-7', null, 200.00)`)
	defer end()
	events := asaas.NewDispatcher("the webhook's token")
	events.OnPayment(charges.Orders(func(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
		if !strings.HasPrefix(o.Reference.Or("order-"), "order-") {
			return 0, charges.NotOurs // another system uses the account
		}
		var shipped int64
		err = tx.QueryRow(ctx, `
			with o as (update orders set paid = $1, settled = $2 where id = $3 or checkout = $4 returning id, settled >= total as complete),
			shipped as (insert into shipments (order_id) select id from o where complete on conflict do nothing returning true)
			select (select count(*) from o), (select count(*) from shipped)`, o.Paid, o.Settled, o.Reference, o.Checkout).Scan(&orders, &shipped)
		fmt.Printf("%s are paid, %s of the price, by %d of %d charges; %d shipped\n", o.Paid, o.Settled, o.PaidCharges, o.Charges, shipped)
		return orders, err
	}))

	boletos := asaastest.NewInstallments(asaas.BillingTypeBoleto, asaas.Cents(20000), 2)
	first, second := boletos[0], boletos[1]
	first.Payment.ExternalReference, second.Payment.ExternalReference = value.Of("order-7"), value.Of("order-7")
	erp := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(5000))
	erp.Payment.ExternalReference = value.Of("ERP-7")
	exampleDeliveries(pool, events, first.Created(), second.Created(), first.Overdue(), erp.Created(), erp.Received())
	first.Payment.OriginalValue, first.Payment.Value = value.Of(asaas.Cents(10000)), asaas.Cents(10312)
	exampleDeliveries(pool, events, first.Confirmed(), second.Confirmed(), second.Received())
	// Output:
	// 0.00 are paid, 0.00 of the price, by 0 of 1 charges; 0 shipped
	// 0.00 are paid, 0.00 of the price, by 0 of 2 charges; 0 shipped
	// 0.00 are paid, 0.00 of the price, by 0 of 2 charges; 0 shipped
	// 103.12 are paid, 100.00 of the price, by 1 of 2 charges; 0 shipped
	// 203.12 are paid, 200.00 of the price, by 2 of 2 charges; 1 shipped
	// 203.12 are paid, 200.00 of the price, by 2 of 2 charges; 0 shipped
}

// Each change of an order's charges is said once: a part of one is given back.
func ExampleHandler() {
	pool, end := exampleTables(`create table orders (id text primary key, total numeric, paid numeric not null default 0);
		insert into orders values ('order-7', 200.00)`)
	defer end()
	events := asaas.NewDispatcher("the webhook's token")
	events.OnPayment(charges.Handler(func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		if c.Paid().IsZero() {
			return nil // it is overdue, say, or its money has come
		}
		var paid, total asaas.Money
		const add = `update orders set paid = paid + $1 where id = $2 returning paid, total`
		if err := tx.QueryRow(ctx, add, c.Paid(), c.After.ExternalReference).Scan(&paid, &total); err != nil {
			return fmt.Errorf("the order of charge %s: %w", c.After.ID, err)
		}
		fmt.Printf("%s: %s of %s are paid\n", c.Paid(), paid, total)
		return nil
	}))
	events.OnPaymentOverdue(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { fmt.Println("remind"); return nil })

	boletos := asaastest.NewInstallments(asaas.BillingTypeBoleto, asaas.Cents(20000), 2)
	first, second := boletos[0], boletos[1]
	first.Payment.ExternalReference, second.Payment.ExternalReference = value.Of("order-7"), value.Of("order-7")
	exampleDeliveries(pool, events, first.Created(), second.Created(), first.Confirmed(), first.Received(),
		first.PartiallyRefunded(asaas.Cents(1000)), second.Overdue(), second.Confirmed())
	// Output:
	// 100.00: 100.00 of 200.00 are paid
	// -10.00: 90.00 of 200.00 are paid
	// remind
	// 100.00: 190.00 of 200.00 are paid
}

// A ledger has a line for each change, and needs no key: its sum is the row of the charge. The events come
// newest first, so that the older ones change nothing.
func ExampleChange_Received() {
	pool, end := exampleTables(`create table ledger (charge text, paid numeric, received numeric)`)
	defer end()
	events := asaas.NewDispatcher("the webhook's token")
	events.OnPayment(charges.Handler(func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		fmt.Printf("%q → %s: paid %s, received %s\n", c.Before.Status, c.After.Status, c.Paid(), c.Received())
		_, err := tx.Exec(ctx, `insert into ledger values ($1, $2, $3)`, c.After.ID, c.Paid(), c.Received())
		return err
	}))

	card := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(29900))
	created, confirmed, received := card.Created(), card.Confirmed(), card.Received()
	exampleDeliveries(pool, events, confirmed, received, created, card.Refunded())
	// Output:
	// "" → CONFIRMED: paid 299.00, received 0.00
	// "CONFIRMED" → RECEIVED: paid 0.00, received 299.00
	// "RECEIVED" → REFUNDED: paid -299.00, received -299.00
}

// The event of a payment never came: the account's lists have it.
func ExampleReconcile() {
	pool, end := exampleTables(`create table orders (id text primary key, paid numeric not null default 0); insert into orders values ('order-1')`)
	defer end()
	ctx := context.Background()
	changed := func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		_, err := tx.Exec(ctx, `update orders set paid = paid + $1 where id = $2`, c.Paid(), c.After.ExternalReference)
		return err
	}
	fake := asaastest.New() // Asaas
	defer fake.Close()
	pix := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	pix.Payment.ExternalReference = value.Of("order-1")
	fake.Emit(pix.Created(), pix.Received())
	client := fake.Client() // asaas.NewClient(asaas.Production, os.Getenv("ASAAS_API_KEY"))

	_, err := charges.Reconcile(ctx, client, pool, charges.Settings{
		Since: pix.Now.AddDate(0, 0, -1), Apply: changed,
		Changed: func(c charges.Change) { fmt.Printf("%s: %s more is paid\n", c.After.Status, c.Paid()) },
	})
	if err != nil {
		log.Fatal(err)
	}

	// It has copied the account's statement.
	var came asaas.Money
	var differ int
	err = pool.QueryRow(ctx, `select sum(came), count(*) filter (where differs) from asaas_proof`).Scan(&came, &differ)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s came, %d charges differ\n", came, differ)
	// Output:
	// RECEIVED: 100.00 more is paid
	// 100.00 came, 0 charges differ
}

// A customer asks for everything that the merchant has about him. The page of package console takes the first of these two,
// and the list of the second.
func ExampleFind() {
	pool, end := exampleTables(`create table orders (id text primary key)`)
	defer end()
	ctx := context.Background()
	pix := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	pix.Payment.ID, pix.Payment.Customer, pix.Payment.ExternalReference = "pay_7", "cus_7", value.Of("order-7")
	events := asaas.NewDispatcher("the webhook's token")
	events.OnPayment(charges.Handler(func(context.Context, pgx.Tx, charges.Change) error { return nil }))
	exampleDeliveries(pool, events, pix.Created(), pix.Received())

	found, err := charges.Find(ctx, pool, "cus_7", 100)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range found {
		fmt.Println(c.ID, c.Status, c.Paid) // the entity of its events: idem show -entity pay_7
	}
	unmatched := charges.Unmatched{DB: pool, Known: `exists (select from orders o where o.id = c.external_reference)`}
	n, err := unmatched.Count(ctx)
	fmt.Println(n, "has no order", err)
	// Output:
	// pay_7 RECEIVED 100.00
	// 1 has no order <nil>
}

// exampleTables makes the tables in a Postgres of the example's own.
func exampleTables(sql string) (pool *pgxpool.Pool, end func()) {
	ctx := context.Background()
	server, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if pool, err = pgxpool.New(ctx, server.URL()); err != nil {
		log.Fatal(err)
	}
	_, ofTable := pool.Exec(ctx, sql)
	for _, err := range []error{ofTable, idem.Migrate(ctx, pool), charges.Migrate(ctx, pool), charges.Filled(ctx, pool, "", time.Time{})} {
		if err != nil {
			log.Fatal(err)
		}
	}
	return pool, func() { pool.Close(); _ = server.Close() }
}

// exampleDeliveries has a receiver process the events.
func exampleDeliveries(pool *pgxpool.Pool, events *asaas.Dispatcher, bodies ...[]byte) {
	receiver := idem.NewInbox(pool, events)
	receiver.WorkFirst = true
	for _, body := range bodies {
		if _, err := receiver.Accept(context.Background(), asaas.Identify(body)); err != nil {
			log.Fatal(err)
		}
	}
}
