package charges

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/value"
)

// Order is the sum of the charges of one name: an order, a Checkout, an installment plan.
//
// A charge counts for one name, the first that it has in the order of the kinds below: if it has a reference, the
// application's own, it is found by that alone.
type Order struct {
	Scope string // the account, as of [idem.Event]
	Kind  Kind
	Name  string

	// Reference is Name if Kind is Reference, and Checkout is Name if Kind is Checkout. The other one is absent: it
	// is NULL in a query, and equals nothing there.
	Reference, Checkout value.Optional[string]

	Settled   asaas.Money // the price that is paid, without interest and discounts: ship once it reaches the total
	Paid      asaas.Money // paid and not given back, whether its money has come or not, with interest
	Received  asaas.Money // the part of Paid whose money has come
	Refunding asaas.Money // the amount of pending refunds: still in Paid
	Held      asaas.Money // the part of Paid that is a Pix which Asaas holds back, for up to 72 hours, and may return

	Charges     int // without those that were removed
	PaidCharges int // those of which something is paid

	// Before and After are the charge that an event, or a reading, changed: for a program that sends thanks, or keeps a
	// ledger. They are equal for a late event.
	Before, After Charge
}

// Kind is a kind of name that a charge has, and that several charges may share. Its text is the kind of
// asaas_charge_sums.
type Kind string

// The kinds, in the order in which they decide.
const (
	Reference    Kind = "reference"    // ExternalReference, the application's own
	Checkout     Kind = "checkout"     // CheckoutSession
	Installment  Kind = "installment"  // of an installment plan
	Subscription Kind = "subscription" // sub_…
	Link         Kind = "link"         // PaymentLink
	QRCode       Kind = "qr code"      // PixQrCodeID, which Pix Automático shares with its authorization
)

// kinds are the kinds with their columns, in the order of [Charge.names].
var kinds = []struct {
	kind   Kind
	column string
}{
	{Reference, "external_reference"},
	{Checkout, "checkout_session"},
	{Installment, "installment"},
	{Subscription, "subscription"},
	{Link, "payment_link"},
	{QRCode, "pix_qr_code_id"},
}

// NotOurs is the error that a function of [Orders] returns for a name that is not the application's: that of another
// system which uses the same account at Asaas. The event is done then.
const NotOurs nameError = "asaas/charges: the name is that of another system's charge"

// nameError is the error of a name.
type nameError string

func (e nameError) Error() string { return string(e) }

// Orders returns a handler for [asaas.Dispatcher.OnPayment] that copies the charge of each event into its row, adds
// up the charges that have its name, and has set store the sum, in the same transaction. set returns how many orders
// it has changed.
//
//	func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
//		set, err := tx.Exec(ctx, `update orders set paid = $1, settled = $2 where id = $3 or checkout = $4`,
//			o.Paid, o.Settled, o.Reference, o.Checkout)
//		return set.RowsAffected(), err
//	}
//
// An order that may be paid by its reference and by a Checkout without it has two names, and two sums: give each a
// column, as docs/handlers.md does.
//
// The order is set, and not added to. So an order that was wrong is right with the next event of one of its charges,
// and two versions of the program may run at once. The name is locked from before the sum until the transaction ends.
//
// The event fails unless set has changed exactly one order, if the charge names a reference or a Checkout. For
// another kind of name there may be none, and for a charge that was removed. For a name of another system's, set
// returns [NotOurs]: give your own references a prefix that no other system's have. set is not called for a charge
// without any name, which [Unmatched] lists once it is paid.
//
// set is called for every event, also for a late one. It is called twice if a charge gets another name: first with
// the old name and its sum without the charge, and then with the new one. The old name need not have an order any
// more.
//
// Events are parked as by [Handler]. All of an account's are, until its table is filled, if idem has done
// payment events of the account before, or has imported them: a sum without their charges would be too small.
func Orders(set func(ctx context.Context, tx pgx.Tx, o Order) (orders int64, err error)) idem.Handler[*asaas.PaymentEvent] {
	return func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		c, err := copyEvent(ctx, tx, e, copying{sums: true})
		if err != nil {
			return err
		}
		return c.set(ctx, tx, set)
	}
}

// name is the kind of name by which a charge is found, and the name; "" for one without any.
type name struct {
	kind Kind
	text string
}

func (c *Charge) name() name {
	for n, text := range c.names() {
		if text := text.Or(""); text != "" {
			return name{kinds[n].kind, text}
		}
	}
	return name{}
}

// lock is the number of the advisory lock of a name.
func (n name) lock(scope string) int64 {
	sum := sha256.Sum256([]byte("asaas/charges\x00" + scope + "\x00" + string(n.kind) + "\x00" + n.text))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// ofSchema is the number of a lock: names of other schemas of the database, those of other tenants, are other ones.
const ofSchema = `$1 # 'asaas_charges'::regclass::oid::bigint)`

// sums are the statements that add up the charges of a name, by its kind.
var sums = func() map[Kind]string {
	all, without := make(map[Kind]string), ""
	for _, k := range kinds {
		all[k.kind] = `select coalesce(sum(settled), 0), coalesce(sum(paid), 0), coalesce(sum(received), 0), coalesce(sum(refunding), 0),
			coalesce(sum(case when status = 'CONFIRMED' and billing_type = 'PIX' then paid end), 0),
			count(case when not deleted then 1 end), count(case when paid > 0 then 1 end)
			from asaas_charges where scope = $1 and ` + k.column + ` = $2` + without
		without += ` and ` + k.column + ` is null`
	}
	return all
}()

// set has the order of the charge set to its sum, and before that the one that it has left.
func (c Change) set(ctx context.Context, tx pgx.Tx, set func(context.Context, pgx.Tx, Order) (int64, error)) error {
	var orders []*Order
	has := c.After.name()
	for _, n := range slices.Compact([]name{c.Before.name(), has}) {
		if n.text == "" {
			continue
		}
		o := &Order{Scope: c.After.Scope, Kind: n.kind, Name: n.text, Before: c.Before, After: c.After}
		switch n.kind {
		case Reference:
			o.Reference = value.Of(n.text)
		case Checkout:
			o.Checkout = value.Of(n.text)
		}
		orders = append(orders, o)
	}
	if len(orders) == 0 {
		return nil
	}
	if err := lockAndSum(ctx, tx, orders); err != nil {
		return fmt.Errorf("asaas/charges: adding up the charges of %s: %w", c.After.ID, err)
	}
	for _, o := range orders {
		n, err := set(ctx, tx, *o)
		mayBeGone := (name{o.Kind, o.Name}) != has || c.After.Deleted && o.Paid.IsZero()
		switch {
		case errors.Is(err, NotOurs):
		case err != nil:
			return err
		case n > 1:
			return idem.NoRetry(fmt.Errorf("asaas/charges: %d orders were set to the sum of the %s %q: have the function of Orders find one, "+
				"by columns that are unique, and replay the event", n, o.Kind, o.Name))
		case n < 1 && !mayBeGone && (o.Kind == Reference || o.Kind == Checkout):
			return fmt.Errorf("asaas/charges: no order was set to the sum of the %s %q, which the charge %s names: store the order before its charge is made; "+
				"if the name is another system's, have the function of Orders return charges.NotOurs", o.Kind, o.Name, c.After.ID)
		}
	}
	return nil
}

// share has handlers of Orders, in another version of the program, wait for what this transaction books of the
// charge's name.
func (c Change) share(ctx context.Context, tx pgx.Tx) error {
	n := c.After.name()
	if n.text == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+ofSchema, n.lock(c.After.Scope)); err != nil {
		return fmt.Errorf("asaas/charges: locking the %s of %s: %w", n.kind, c.After.ID, err)
	}
	return nil
}

// lockAndSum locks the names until the transaction ends, and then adds up their charges, in one round trip. Each sum
// is a statement of its own behind the locks, so that it sees what their last holders have committed.
func lockAndSum(ctx context.Context, tx pgx.Tx, orders []*Order) error {
	var locks []int64
	for _, o := range orders {
		locks = append(locks, name{o.Kind, o.Name}.lock(o.Scope))
	}
	slices.Sort(locks) // two charges that change their names do not wait for each other
	b := &pgx.Batch{}
	for _, lock := range locks {
		b.Queue(`select pg_advisory_xact_lock(`+ofSchema, lock)
	}
	for _, o := range orders {
		b.Queue(sums[o.Kind], o.Scope, o.Name).QueryRow(func(row pgx.Row) error {
			return row.Scan(&o.Settled, &o.Paid, &o.Received, &o.Refunding, &o.Held, &o.Charges, &o.PaidCharges)
		})
	}
	return tx.SendBatch(ctx, b).Close()
}
