package asaas_test

import (
	"testing"

	"github.com/paghooks/paghooks/asaas"
)

// decimal is a number that is there.
func decimal(t testing.TB, s string) asaas.Decimal {
	t.Helper()
	d, err := asaas.ParseDecimal(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
