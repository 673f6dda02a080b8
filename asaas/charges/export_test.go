package charges

// For the tests of package charges_test.
var (
	ChargeOf = chargeOf
	NumberOf = numberOf
)
