package asaas

import (
	"bytes"
	"encoding/json"

	"github.com/paghooks/paghooks/idem/value"
)

// Decimal is [value.Decimal], an exact decimal number.
type Decimal = value.Decimal

// Money is an amount in reais: 10.50 is R$ 10,50. It is negative where money
// leaves, as in INTERNAL_TRANSFER_DEBIT. No amount of Asaas's has a fraction of a
// cent.
type Money = Decimal

// Percent is [value.Percent]: 2.5 is 2.5 %.
type Percent = value.Percent

// Int is [value.Int], a whole number in any spelling.
type Int = value.Int

// Text is [value.Text], a text that Asaas sometimes sends as a number: the id of
// a bill, the number of a bank.
type Text = value.Text

// ParseDecimal reads a number in any spelling that JSON has: -3.5, 10.00, 1e2.
func ParseDecimal(s string) (Decimal, error) { return value.ParseDecimal(s) }

// Cents returns an amount of so many cents: Cents(1050) is R$ 10.50. It panics
// where the amount in reais has more than 18 digits.
func Cents(n int64) Decimal { return value.OfCents(n) }

// PercentOf makes a percentage of a number: 2.5 is 2.5 %.
func PercentOf(n Decimal) Percent { return value.PercentOf(n) }

// AdditionalInfo is the JSON that Asaas adds to an event. Asaas documents an
// object for PAYMENT_SPLIT_DONE and a message for the blocks because of splits,
// but not of which kind of JSON that is.
type AdditionalInfo []byte

// SplitID returns splitId, the id of one of the charge's splits. ok is false
// where there is none, or where the JSON is no object.
func (a AdditionalInfo) SplitID() (id string, ok bool) {
	var object struct{ SplitID *string }
	if json.Unmarshal(a, &object) != nil || object.SplitID == nil {
		return "", false
	}
	return *object.SplitID, true
}

// Message returns the text for people. ok is false where the JSON is no text.
func (a AdditionalInfo) Message() (text string, ok bool) {
	var p *string
	if json.Unmarshal(a, &p) != nil || p == nil {
		return "", false
	}
	return *p, true
}

// UnmarshalJSON implements [json.Unmarshaler]. It takes any JSON.
func (a *AdditionalInfo) UnmarshalJSON(data []byte) error {
	*a = bytes.Clone(data)
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (a AdditionalInfo) MarshalJSON() ([]byte, error) { return json.RawMessage(a).MarshalJSON() }

// SplitID returns the id of the split that a PAYMENT_SPLIT_DONE is about, one of
// Payment.AllSplits; "" where the event names none.
func (e *PaymentEvent) SplitID() string {
	id, _ := e.AdditionalInfo.Or(nil).SplitID()
	return id
}

// Block returns the block, under whichever of its two names it was sent. It is
// empty if it was sent under neither.
func (e *BalanceEvent) Block() BalanceBlock {
	return either(e.BalanceData, e.Balance).Or(BalanceBlock{})
}

// LastDay returns the last day of the discount, from LimitDate or from its
// other spelling, LimitedDate. Without it, DueDateLimitDays counts.
func (d Discount) LastDay() value.Optional[Date] { return either(d.LimitDate, d.LimitedDate) }

// AllSplits returns the other recipients of a part of the charge, from Split or from its
// other spelling, Splits. It is empty if there are none.
func (p Payment) AllSplits() []Split { return either(p.Split, p.Splits).Or(nil) }

// Percentage returns the split's per cent, from PercentageValue or from its
// other spelling, PercentualValue.
func (s CheckoutSplit) Percentage() value.Optional[Percent] {
	return either(s.PercentageValue, s.PercentualValue)
}

// WhyDisabled returns why the API key is disabled, from DisabledReason or from
// its other spelling, DisableReason.
func (t AccessToken) WhyDisabled() value.Optional[AccessTokenDisabledReason] {
	return either(t.DisabledReason, t.DisableReason)
}

// either is a field that comes by two names: the first that has a value.
func either[T any](field, other value.Optional[T]) value.Optional[T] {
	if _, ok := field.Get(); ok {
		return field
	}
	return other
}
