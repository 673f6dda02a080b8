package asaas

import "github.com/paghooks/paghooks/idem/optional"

// Block returns the block, under whichever of its two names it was sent. It is
// empty if it was sent under neither.
func (e *BalanceEvent) Block() BalanceBlock {
	return either(e.BalanceData, e.Balance).Or(BalanceBlock{})
}

// LastDay returns the last day of the discount, from LimitDate or from its
// other spelling, LimitedDate. Without it, DueDateLimitDays counts.
func (d Discount) LastDay() optional.Value[Date] { return either(d.LimitDate, d.LimitedDate) }

// AllSplits returns the other recipients of a part of the charge, from Split or from its
// other spelling, Splits. It is empty if there are none.
func (p Payment) AllSplits() []Split { return either(p.Split, p.Splits).Or(nil) }

// Percentage returns the split's per cent, from PercentageValue or from its
// other spelling, PercentualValue.
func (s CheckoutSplit) Percentage() optional.Value[Percent] {
	return either(s.PercentageValue, s.PercentualValue)
}

// WhyDisabled returns why the API key is disabled, from DisabledReason or from
// its other spelling, DisableReason.
func (t AccessToken) WhyDisabled() optional.Value[AccessTokenDisabledReason] {
	return either(t.DisabledReason, t.DisableReason)
}

// either is a field that comes by two names: the first that has a value.
func either[T any](field, other optional.Value[T]) optional.Value[T] {
	if _, ok := field.Get(); ok {
		return field
	}
	return other
}
