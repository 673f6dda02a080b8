package charges

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/value"
)

// Charge is a row of asaas_charges: a charge as its newest event, or a later reading of it, has it.
type Charge struct {
	Scope, ID string // the account, as of [idem.Event]; pay_…
	Status    asaas.PaymentStatus

	Value         asaas.Money // with the interest and the fine that were paid with it
	OriginalValue asaas.Money // without: compare it with the price of an order
	Refunded      asaas.Money // given back
	Refunding     asaas.Money // the amount of pending refunds: still in Paid
	Paid          asaas.Money // paid and not given back, whether its money has come or not
	Settled       asaas.Money // OriginalValue less Refunded, if something is paid: the part of an order's price that is done
	Received      asaas.Money // the part of Paid whose money has come

	Deleted, Anticipated bool
	BillingType          asaas.BillingType
	Customer             string // cus_…; "" once it is erased

	// Each is absent until Asaas sends one that is not "". An absent one is NULL in a query, and equals nothing there.
	ExternalReference, Installment, Subscription, CheckoutSession, PaymentLink, PixQrCodeID value.Optional[string]
	InstallmentNumber                                                                       int // from 1; 0 for none

	NetValue   value.Optional[asaas.Money] // Value without Asaas's fees
	Created    asaas.Date                  // days as 2026-08-08; "" for none
	Due        asaas.Date
	Credited   asaas.Date // when its money comes
	ReceivedOn asaas.Date // when its money came

	At    time.Time // of the event
	Event string    // its id; "" for a reading

	number   int64 // behind the & of Event
	erased   bool
	discount discount // of the copy; zero in a row
}

// Change is the difference that one copy made to a row.
type Change struct {
	Before Charge // the row as it was; zero for a charge that had none
	After  Charge // the row as it is; the same as Before if Late
	Late   bool   // the event is older than the row, or was copied before: nothing changed
}

// Paid returns how much more of the charge is paid than before: it is negative when money goes
// back, and zero when an event is about something else. The sum over all changes of a charge
// is the Paid of its row, in any order of its events: add it to the order that the charge is for.
func (c Change) Paid() asaas.Money { return c.After.Paid.Sub(c.Before.Paid) }

// Received is Paid for the money that has come. A card is paid a month before its money comes, and
// money that has come may go back: insert it into the ledger.
func (c Change) Received() asaas.Money { return c.After.Received.Sub(c.Before.Received) }

// BecamePaid reports whether nothing of the charge was paid before, and something is now. It is true
// a second time for a chargeback that is won, and for money that moves to another name: see [Handler].
func (c Change) BecamePaid() bool { return c.Before.Paid.Sign() <= 0 && c.After.Paid.Sign() > 0 }

// Handler returns a handler for [asaas.Dispatcher.OnPayment] that copies the charge of each event into its row, and
// calls apply with the difference, in the same transaction. It is for a ledger; [Orders] sets orders, and corrects one
// that was wrong. apply is not called for an event that is older than the row and brings no name that the row lacks. An
// error of apply fails the event, and its copy is rolled back.
//
// If a paid charge gets another reference, or without one its first Checkout, link or other name, apply is called
// twice: the paid amount is taken from the old names, and added to the new ones.
//
// Do not run a version of the program that books in another way at the same time: PAYMENT_CREATED counts as the first
// event of its charge, and amounts that the other version has booked by then are booked again. With [Orders] they are
// not.
//
// Events are parked, with [idem.NoRetry], if they cannot be copied without guessing about money: see
// [Copy]. With a nil apply, the handler only copies, and does so for every charge: register it beside the
// handlers that have booked so far, until the table is filled. See the package comment.
func Handler(apply func(ctx context.Context, tx pgx.Tx, c Change) error) idem.Handler[*asaas.PaymentEvent] {
	return func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		c, err := copyEvent(ctx, tx, e, copying{filling: apply == nil})
		switch {
		case err != nil:
			return err
		case apply == nil:
			return c.share(ctx, tx)
		case c.Late:
			return nil
		}
		return c.tell(ctx, tx, apply)
	}
}

// tell calls apply with the change, in two parts if the money has to move: what the old names got is taken back, and the
// new ones get it.
func (c Change) tell(ctx context.Context, tx pgx.Tx, apply func(context.Context, pgx.Tx, Change) error) error {
	if c.moves() {
		unpaid := c.Before
		unpaid.Paid, unpaid.Received = asaas.Money{}, asaas.Money{}
		if err := apply(ctx, tx, Change{Before: c.Before, After: unpaid}); err != nil {
			return err
		}
		c.Before = unpaid
	}
	return apply(ctx, tx, c)
}

// moves reports whether money was booked by other names than the charge has now. A charge is found by its reference, and
// by the others if it has none.
func (c Change) moves() bool {
	if c.Before.Paid.IsZero() && c.Before.Received.IsZero() {
		return false
	}
	if reference := c.After.ExternalReference; !reference.IsZero() {
		return reference != c.Before.ExternalReference
	}
	was := c.Before.names()
	for n, name := range c.After.names() {
		if *name != *was[n] {
			return true
		}
	}
	return false
}

// Copy copies the charge of an event into its row, and returns the difference. ctx is that of the
// event's handler, which has its scope. tx is the handler's transaction, which has to commit: a program
// that calls Copy and returns an error has not copied.
//
// An event counts as newer than the row by its time, then by the number behind the & of its id,
// then by its id, and never by its arrival. The row stays locked until the transaction ends, so that the
// events of a charge are booked one after the other. Asaas sends a Checkout's session in some bodies only, so a name of the charge
// that an event leaves out, or has as null or "", stays as it was, and one that the row has not is taken from an older event, too.
//
// The error is an [idem.NoRetry] for an event without a time, for a charge's id that is no text, for a status that is
// newer than this module, and for a refund that is done and has no amount. It is one if the money may have been booked
// before: for a charge with a row under another scope, unless [Apart] allows that, and for a charge without a row that
// was made before the table is complete, or has a done event. It is also one for an event of another account than the
// scope's earlier events.
func Copy(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) (Change, error) {
	return copyEvent(ctx, tx, e, copying{})
}

// CopyRead copies a charge that was read from the API. at is a time that is certainly before the
// reading: the time of the request, less the most that the clocks of this machine and of Asaas may differ, an hour say.
// An event of at or later counts as newer than the reading, so that no newer event is taken for an older one.
//
// A charge without a status, which is what an answer of 404 is decoded to, changes nothing and is an
// error: a key of another account finds no charge either. The other errors are those of [Copy].
func CopyRead(ctx context.Context, tx pgx.Tx, scope string, p *asaas.Payment, at time.Time) (Change, error) {
	return copyRead(ctx, tx, scope, p, at, copying{hasDone: hasDone})
}

// copying holds what decides about a charge without a row.
type copying struct {
	filling bool   // other handlers may have booked it, and go on booking
	sums    bool   // an order is set to the sum of its charges: what others have booked of this one does not matter
	account string // account.id of the event; "" for none
	made    bool   // the event says that the charge was made just now

	// hasDone reports whether an event of the charge, other than this one, is done: other handlers have booked it.
	hasDone func(ctx context.Context, tx pgx.Tx, c *Charge) (bool, error)
}

func copyEvent(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent, how copying) (Change, error) {
	event, ok := idem.EventFrom(ctx)
	if !ok {
		return Change{}, errors.New("asaas/charges: the context is of no handler, so that the event's account is not known: pass on that of the handler")
	}
	c, err := chargeOf(&e.Payment)
	if err != nil {
		return Change{}, idem.NoRetry(err)
	}
	if c.At, err = e.DateCreated.Time(); err != nil {
		return Change{}, idem.NoRetry(fmt.Errorf("asaas/charges: the event of %s has no time, so that it cannot be told from older ones: %w", c.ID, err))
	}
	c.Scope, c.Event, c.number = event.Scope, event.ID, numberOf(event.ID)
	how.account, how.made, how.hasDone = storable(e.Account.Or(asaas.Account{}).ID.Or("")), e.Event == asaas.EventPaymentCreated, hasDone
	return c.copy(ctx, tx, how)
}

func copyRead(ctx context.Context, tx pgx.Tx, scope string, p *asaas.Payment, at time.Time, how copying) (Change, error) {
	if p == nil || p.ID == "" || p.Status == "" {
		return Change{}, errors.New("asaas/charges: what was read is no charge, it has no id or no status: its row is left as it is")
	}
	c, err := chargeOf(p)
	if err != nil {
		return Change{}, err
	}
	// Asaas's times are of a second: of the events of one second none may count as older.
	c.Scope, c.At, c.number = scope, at.Truncate(time.Second), -1
	return c.copy(ctx, tx, how)
}

// numberOf returns the number behind the & of an event's id, which rises from one event of Asaas's to the
// next; 0 for an id without one.
func numberOf(id string) int64 {
	digits := id[strings.LastIndexByte(id, '&')+1:]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits == id || digits[0] < '0' || digits[0] > '9' {
		return 0
	}
	return n
}

// The columns that a copy sets, in the order of args; each has one argument behind scope, id and customer. A name
// that a copy leaves out stays as it was.
const (
	moneyColumns = `status, value, original_value, net_value, refunded, refunding, paid, settled, received, deleted, anticipated, billing_type,
	created, due, credited, received_on`
	nameColumns = `external_reference, checkout_session, installment, subscription, payment_link, pix_qr_code_id`
	copyColumns = `installment_number, at, number, event`

	columns = moneyColumns + ", " + nameColumns + ", " + copyColumns
)

var (
	// upsert locks the row, and makes the copy the row unless that is newer. It returns the row as it was.
	//
	// Where another transaction inserts the row at the same time, or the row is that of another scope, the statement
	// finds no old one, and writes nothing. An update that did not ask for it would overwrite a row that it cannot
	// return.
	upsert = `with old as (select apart, scope, id, customer, erased, ` + columns + ` from asaas_charges where scope = $1 and id = $2 for update),
		written as (insert into asaas_charges (apart, scope, id, customer, ` + columns + `)
			values (coalesce((select apart from old), (select scope from asaas_charges_since where scope = $1 and apart), ''), ` + parameters(1, 29) + `)
			on conflict (id, apart) do update set (customer, ` + columns + `) = row (case when asaas_charges.erased then '' else excluded.customer end, ` +
		each(moneyColumns, "excluded.%s") + `, ` + each(nameColumns, "coalesce(excluded.%[1]s, asaas_charges.%[1]s)") + `, ` + each(copyColumns, "excluded.%s") + `)
			where (asaas_charges.at, asaas_charges.number, asaas_charges.event) < (excluded.at, excluded.number, excluded.event) and exists (select from old)
			returning true)
		select exists (select from written), since, seen, account, others, old.scope, id, customer, erased, ` + columns + `
		from (select) as one left join old on true left join asaas_charges_since s on s.scope = $1`

	// amend sets what a row learns from an older event, or an event from the row.
	amend = `update asaas_charges set original_value = $3, settled = $4, (` + nameColumns + `) = row (` + parameters(5, 10) + `)
		where scope = $1 and id = $2`
)

// each returns the list with each column as in the format.
func each(list, format string) string {
	var out []string
	for column := range strings.SplitSeq(list, ",") {
		out = append(out, fmt.Sprintf(format, strings.TrimSpace(column)))
	}
	return strings.Join(out, ", ")
}

func parameters(first, last int) string {
	var list []string
	for n := first; n <= last; n++ {
		list = append(list, "$"+strconv.Itoa(n))
	}
	return strings.Join(list, ", ")
}

func (c *Charge) args() []any {
	return []any{
		c.Scope, c.ID, c.Customer,
		string(c.Status), c.Value, c.OriginalValue, c.NetValue, c.Refunded, c.Refunding, c.Paid, c.Settled, c.Received, c.Deleted, c.Anticipated, string(c.BillingType),
		c.Created, c.Due, c.Credited, c.ReceivedOn,
		c.ExternalReference, c.CheckoutSession, c.Installment, c.Subscription, c.PaymentLink, c.PixQrCodeID,
		c.InstallmentNumber, c.At, c.number, c.Event,
	}
}

// copy makes the charge its row, unless that is newer, in one round trip.
func (c *Charge) copy(ctx context.Context, tx pgx.Tx, how copying) (Change, error) {
	w, err := c.write(ctx, tx)
	if err == nil && !w.had && !w.written { // another transaction has inserted the row, and has ended
		w, err = c.write(ctx, tx)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("asaas/charges: copying %s: %w", c.ID, err)
	case !w.had && !w.written:
		err = c.elsewhere(ctx, tx)
	default:
		err = c.admit(ctx, tx, w.account, how, !w.had)
	}
	before := w.before
	switch {
	case err != nil:
		return Change{}, err
	case !w.had:
		return Change{After: *c}, nil
	case w.written:
		after := *c
		if after.erased = before.erased; after.erased {
			after.Customer = ""
		}
		after.learn(&before)
		if after.discounted(&before, c.discount) {
			err = after.amend(ctx, tx)
		}
		return Change{Before: before, After: after}, err
	}
	after := before
	learned := after.learn(c)
	if !after.discounted(c, c.discount) && !learned {
		return Change{Before: before, After: before, Late: true}, nil
	}
	return Change{Before: before, After: after}, after.amend(ctx, tx)
}

func (c *Charge) amend(ctx context.Context, tx pgx.Tx) error {
	args := []any{c.Scope, c.ID, c.OriginalValue, c.Settled}
	for _, name := range c.names() {
		args = append(args, *name)
	}
	if _, err := tx.Exec(ctx, amend, args...); err != nil {
		return fmt.Errorf("asaas/charges: amending the row of %s: %w", c.ID, err)
	}
	return nil
}

// written is the result of upsert.
type written struct {
	account
	had     bool   // the charge had a row
	before  Charge // that row
	written bool   // the copy is the row
}

func (c *Charge) write(ctx context.Context, tx pgx.Tx) (w written, err error) {
	rows, err := tx.Query(ctx, upsert, c.args()...)
	if err != nil {
		return w, err
	}
	return pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (w written, err error) {
		first := []any{&w.written, &w.since, &w.seen, &w.id, &w.others}
		if w.had = row.RawValues()[len(first)] != nil; w.had {
			return w, w.before.scan(row, first...)
		}
		return w, row.Scan(append(first, make([]any, len(row.RawValues())-len(first))...)...)
	})
}

// names are those by which an application may know what the charge is for.
func (c *Charge) names() []*value.Optional[string] {
	return []*value.Optional[string]{
		&c.ExternalReference, &c.CheckoutSession, &c.Installment, &c.Subscription, &c.PaymentLink, &c.PixQrCodeID,
	}
}

// learn gives the charge the names that it has not and the other copy has.
func (c *Charge) learn(other *Charge) (learned bool) {
	has := other.names()
	for n, name := range c.names() {
		if name.IsZero() && !has[n].IsZero() {
			*name, learned = *has[n], true
		}
	}
	return learned
}

// scan reads a row, with other columns before its own.
func (c *Charge) scan(row pgx.Row, first ...any) error {
	names := c.names()
	err := row.Scan(append(first,
		&c.Scope, &c.ID, &c.Customer, &c.erased,
		&c.Status, &c.Value, &c.OriginalValue, &c.NetValue, &c.Refunded, &c.Refunding, &c.Paid, &c.Settled, &c.Received, &c.Deleted, &c.Anticipated, &c.BillingType,
		&c.Created, &c.Due, &c.Credited, &c.ReceivedOn, names[0], names[1], names[2], names[3], names[4], names[5],
		&c.InstallmentNumber, &c.At, &c.number, &c.Event,
	)...)
	for _, name := range names {
		*name = nonEmpty(*name)
	}
	if c.NetValue.IsNull() {
		c.NetValue = value.Optional[asaas.Money]{}
	}
	return err
}
