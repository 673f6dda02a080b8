package asaas

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

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

// Cents returns an amount of so many cents: Cents(1050) is R$ 10.50. It panics
// where the amount in reais has more than 18 digits.
func Cents(n int64) Decimal { return value.OfCents(n) }

// Date is a day, as Asaas wrote it: "2026-08-08", but also "08/08/2026" or
// "2026-08-08T03:00:00+0000", because the spelling differs between fields and
// changes. It is a [value.DateIn] of Brasília.
type Date = value.DateIn[brazil]

// DateTime is an instant, as Asaas wrote it: "2026-08-08 20:45:13", which is
// Brasília time, or "2026-08-08T23:45:13Z". A day without a time is its first
// instant. It is a [value.TimeIn] of Brasília.
type DateTime = value.TimeIn[brazil]

// Brasilia returns the time zone of every time that Asaas writes without one.
func Brasilia() *time.Location { return brasilia() }

var brasilia = sync.OnceValue(func() *time.Location {
	if loc, err := time.LoadLocation("America/Sao_Paulo"); err == nil {
		return loc
	}
	return time.FixedZone("-03", -3*60*60) // no time zone data; Brazil has had no summer time since 2019
})

// brazil is the zone of all that Asaas writes.
type brazil struct{}

func (brazil) Location() *time.Location { return brasilia() }

func (brazil) Layouts() []string { return brazilian }

var brazilian = []string{"2006-01-02", "02/01/2006", "02/01/2006 15:04:05"}

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
