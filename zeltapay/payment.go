package zeltapay

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/paghooks/paghooks/idem/value"
)

// LinkID is the id of the payment link that was paid, "pl_…": paymentLinkId
// of the flat layout, paymentLink.id of the nested one. It is "" when the body
// has neither.
func (e *PaymentEvent) LinkID() string {
	return text(e.PaymentLinkID, e.link().ID)
}

// TransactionID names the payment: transaction.externalPaymentId of the flat
// layout, the processor's id; transaction.id of the nested one, which may be
// an id of Zelta Pay's own. Do not expect one payment to have the same id in
// both. It is "" when the body has neither.
func (e *PaymentEvent) TransactionID() string {
	return text(e.transaction().ExternalPaymentID, e.transaction().ID)
}

// Amount returns the paid amount, in cents: transaction.amount of the flat layout; in
// the nested one paymentLink.amount, the amount of the link. ok is false when
// the body has neither, which is not the same as an amount of 0.
func (e *PaymentEvent) Amount() (amount Cents, ok bool) {
	return first(e.transaction().Amount, e.link().Amount)
}

// Currency is the amount's currency, "USD": transaction.currency of the flat
// layout. It is "" in the nested one, which does not say it.
func (e *PaymentEvent) Currency() string {
	return text(e.transaction().Currency)
}

// PaidAt is when the customer paid: transaction.paidAt of the flat layout,
// transaction.completedAt of the nested one. It is "" when the body has
// neither, which a timestamp column stores as NULL.
func (e *PaymentEvent) PaidAt() Time {
	at, _ := first(e.transaction().PaidAt, e.transaction().CompletedAt)
	return at
}

// PaymentMethod is transaction.paymentMethod of both layouts, or "" without
// it. The values are open, and differ between Zelta Pay's own pages:
// "credit_card" in a webhook, "card" and "yappy" in the API.
func (e *PaymentEvent) PaymentMethod() string {
	return text(e.transaction().PaymentMethod)
}

// CustomerName is customer.customerName of the flat layout. It is "" in the
// nested one, which does not say it.
func (e *PaymentEvent) CustomerName() string {
	return text(e.customer().CustomerName)
}

// CustomerEmail is customer.customerEmail of the flat layout, customer.email
// of the nested one. It is "" when the customer gave none.
func (e *PaymentEvent) CustomerEmail() string {
	return text(e.customer().CustomerEmail, e.customer().Email)
}

// LinkMetadata returns the metadata that you attached to the payment link when you created it,
// such as your own order id: metadata of the flat layout, paymentLink.metadata
// of the nested one. It is nil when there is none, and still good for
// [Metadata.String].
func (e *PaymentEvent) LinkMetadata() Metadata {
	m, _ := first(e.Metadata, e.link().Metadata)
	return m
}

// IsTest reports whether no real money moved: transaction.isTest of the flat
// layout. It is false where the body does not say: before Zelta Pay's version
// 1.1.0, and in the nested layout. A handler sees a test payment only with
// AllowTest of the [Dispatcher].
func (e *PaymentEvent) IsTest() bool {
	return e.transaction().IsTest.Or(false)
}

func (e *PaymentEvent) link() PaymentLink { return e.PaymentLink.Or(PaymentLink{}) }

func (e *PaymentEvent) transaction() Transaction { return e.Transaction.Or(Transaction{}) }

func (e *PaymentEvent) customer() Customer { return e.Customer.Or(Customer{}) }

// first returns the first value that there is.
func first[T any](values ...value.Optional[T]) (val T, ok bool) {
	for _, v := range values {
		if val, ok = v.Get(); ok {
			return val, true
		}
	}
	return val, false
}

func text(values ...value.Optional[string]) string {
	s, _ := first(values...)
	return s
}

// Metadata holds the values that the merchant attached to a payment link: at most 20 keys
// with a string, a number, a boolean or null each. The values are kept as the
// JSON that was sent, so that no number loses a digit on the way.
//
//	id, ok := metadata.String("orderId")
//
// Any of them may be about a person, so fmt and slog show only the number of keys. json.Marshal writes all.
//
// It is a good argument of tx.Exec for a column of type json, jsonb or text.
type Metadata map[string]json.RawMessage

// String returns a key's value as text: a string as it is, a number or a
// boolean as it was written, 1001 or true. ok is false when the key is absent,
// null, or something that Zelta Pay does not document.
func (m Metadata) String(key string) (s string, ok bool) {
	raw := m[key]
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case 'n', '{', '[':
		return "", false
	case '"':
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	return string(raw), true
}

// Value implements [driver.Valuer].
func (m Metadata) Value() (driver.Value, error) {
	if m == nil {
		return nil, nil
	}
	data, err := json.Marshal(m)
	return string(data), err
}

// Format implements [fmt.Formatter]: every verb shows the number of fields.
func (m Metadata) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%d fields]", len(m)) }

// LogValue implements [slog.LogValuer], and shows no more.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(m)) }

// Cents is [value.Cents], an amount of money in the smallest unit of its
// currency: 1500 is 15.00 USD. Zelta Pay documents whole cents as a JSON number.
type Cents = value.Cents

// Time is [value.Time], a point in time as Zelta Pay wrote it,
// "2025-01-15T10:30:00.000Z". One without a zone is UTC, the zone of every
// documented sample.
type Time = value.Time
