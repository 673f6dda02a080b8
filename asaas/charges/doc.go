// Package charges keeps a table with one row for each charge at Asaas, and sets orders to the sum of
// their charges.
//
// An event of Asaas's carries the whole charge, as of that time. An amount booked for each event is wrong for a card
// payment that is refunded before its money came, for the second of two partial refunds, for a chargeback that is won,
// and for twelve boletos with one reference. Here the newest event is copied into the row of its charge, and the
// application sets its order to the sum of the rows. That is right in any order of the events, even if some come twice
// or never: an older event changes nothing, and the next one makes up for a missed one. An order that was wrong is
// right with the next event.
//
// # Set orders
//
//	must(idem.Migrate(ctx, pool))
//	must(charges.Migrate(ctx, pool))
//	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//	events.OnPayment(charges.Orders(paid))
//
//	// paid sets the order to the sum of its charges, and ships it once, when its price is settled.
//	func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
//		err = tx.QueryRow(ctx, `
//			with o as (update orders set paid = $1, settled = $2 where id = $3 or checkout = $4 returning id, settled >= total as complete),
//			shipped as (insert into shipments (order_id) select id from o where complete on conflict do nothing)
//			select count(*) from o`, o.Paid, o.Settled, o.Reference, o.Checkout).Scan(&orders)
//		return orders, err
//	}
//
// Installments, renewals, partial refunds and chargebacks are no special cases. The event fails unless exactly one
// order was set: see [Orders]. An unrequested payment names no order: [Unmatched] finds paid charges without one, and
// [Overpaid] finds orders that are paid twice.
//
// A handler of one event type may stand beside it, for side effects, not for bookkeeping. It runs after the family's, in the same
// transaction, and sees the new row. It also runs for a late event: a reminder asks the row whether the charge is
// still overdue. If your program needs no event of some types, ignore them: each costs a copy. Do not ignore
// PAYMENT_CREATED, which notices an order that is not stored before it is paid.
//
//	events.OnPaymentOverdue(remind) // insert into reminders select id from asaas_charges where id = $1 and status = 'OVERDUE'
//	events.Ignore(asaas.EventPaymentCheckoutViewed, asaas.EventPaymentBankSlipViewed)
//
// # Book differences
//
// [Handler] reports what each event changed, for a program that keeps a ledger. A wrong difference stays wrong, and two
// versions of such a program must not run at once. Do not ignore PAYMENT_CREATED there: if another event is the first
// of a charge, its copy searches all stored events of the account.
//
// # Keep a ledger
//
// Paid and Received are two amounts, because a card is paid a month before its money comes. Orders
// need the first, a ledger the second:
//
//	insert into ledger (charge, paid, received) values ($1, $2, $3)  -- c.After.ID, c.Paid(), c.Received()
//
// needs no key: the sum of a charge's lines is its row, in any order of the events. Its sums are right, and its days
// are not: an event does not say on which day Asaas moves the money. Received has cash, whose status is
// RECEIVED_IN_CASH and which never was at Asaas, and leaves out fees, splits, anticipations and transfers.
//
// For amounts by day use the account's statement, which [Daily] copies into asaas_statement. Its views are Asaas's
// books, by days in Brasília:
//
//	select * from asaas_ledger where scope = '' and day >= '2026-11-01'; -- each day, with its opening and closing balance
//	select * from asaas_months where scope = '';                         -- a month closes: see docs/accountant.md
//	select * from asaas_proof where scope = '' and differs;              -- charges of which the statement and the table disagree
//
//	Status                                                     Paid   Received
//	PENDING, AUTHORIZED, AWAITING_RISK_ANALYSIS, OVERDUE,      0      0
//	  DUNNING_REQUESTED
//	CONFIRMED                                                  rest   0
//	RECEIVED, RECEIVED_IN_CASH, DUNNING_RECEIVED               rest   rest
//	REFUND_REQUESTED, REFUND_IN_PROGRESS                       0      rest, if its money had come
//	REFUNDED, CHARGEBACK_REQUESTED, CHARGEBACK_DISPUTE,        0      0
//	  AWAITING_CHARGEBACK_REVERSAL
//
// rest is Value less the refunds that are DONE. Settled is the same of OriginalValue, which leaves out the interest of
// a late payment, and the discount of an early one: compare it with the price. Asaas does not document what Value is
// after a discount. If neither it nor OriginalValue is the price, an earlier event has that, and Settled is of it.
// Refunding is the amount of pending refunds; a careful shop ships when Settled less Refunding is the total. A Pix that
// Asaas holds back for up to 72 hours is CONFIRMED: it is paid, and in Held of its Order. A removed charge keeps its
// status, that of an unpaid charge.
//
// # Look at the table
//
//	select settled, paid from asaas_charge_sums where kind = 'reference' and name = 'order-7';
//
// The view asaas_charge_sums adds up the charges with one name. kind is reference, checkout, installment, subscription,
// link or qr code. A charge with several names is in the sum of each.
//
//	select c.* from asaas_charges c
//	where paid > 0 and not exists (select from orders o where o.id = c.external_reference or o.checkout = c.checkout_session);
//
// lists paid charges without an order; [Unmatched] does so for health. [Daily] books missed events, and compares
// the table with the account's statement. GORM, sqlc and database/sql use the handler's transaction as in any
// handler (package idemsql), and the table as any table. [Copy] copies an event, and returns the change.
//
// # Several accounts
//
// Your own tables have the account's scope, c.After.Scope, in their keys. The table of charges has one row for each
// charge, whatever its scope: an event of the charge under a second scope is parked, with both names in its error. An
// event of another account than the scope's earlier events is parked, too. The command idem rescope moves the table
// with the events. [Apart] is for the sandbox beside production.
//
// # Start in a shop that runs already
//
// The row of a charge that another program has booked is not there yet, and its first event here would book all of it
// again. So the table records for each account since when it is complete: since the account's first charge, and in a
// new shop since the day on which [Migrate] made it. The first event of an older charge, or of a charge with a done
// event, is parked, with the remedy in its error. A new shop notices nothing. A shop that runs already starts in
// three steps, for each account:
//
//  1. Register charges.Handler(nil) beside the old handlers. It copies every charge and books nothing; the old handlers
//     go on booking.
//  2. Fill the table: [Reconcile] without a function, from the first charge on. For charges.Handler, then wait until no event that
//     happened before step 2 waits, at Asaas or here: the table has its change already, and only the old handlers
//     book it.
//  3. Register charges.Orders(paid) instead, and remove the old handlers. The two versions may run at once. Stop the
//     old version first if the new one has charges.Handler(changed), which would book the same differences again.
//
// If no program has ever booked the account's charges, nothing has to be filled: call [Filled] with the zero time.
// Tests do, because their charges are made on other days.
//
// # What is refused
//
// An event that cannot be copied without guessing about money is parked, and health is red: it has no
// time, its status is newer than this module, a refund is done and has no amount. Update the module, and replay it.
//
// # Keep and erase
//
// The table holds ids, amounts and days, and no name. [Erase] removes a customer's id. A row is needed as long as a
// refund or a dispute may come: an event of a charge without a row would book all of it. So remove old rows together
// with the day since when the table is complete, and such an event is parked instead:
//
//	update asaas_charges_since set since = greatest(since, '2025-01-01');
//	delete from asaas_charges where created < '2025-01-01' and not open;
//
// [Orders] adds up the rows of a name, and without one of them the sum is too small. So it needs them for as long as
// any charge of the name may come: keep those of a subscription, a link or an order that is not over.
package charges
