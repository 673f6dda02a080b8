package decimals

import (
	"fmt"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

func Example() {
	paid := asaas.Cents(2990) // of an event: e.Payment.Value
	fee, err := Money(Of(paid).Mul(decimal.RequireFromString("0.0199")).RoundBank(2))
	fmt.Println(paid, fee, err)
	// Output: 29.90 0.60 <nil>
}

func TestAnAmountIsTheSameBothWays(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	for _, tt := range []struct{ reason, amount string }{
		{"nothing", "0"},
		{"an amount that no float has", "0.1"},
		{"money that leaves", "-29.90"},
		{"as many digits as there may be", "9999999999999999.99"},
		{"a rate", "0.000000000000000001"},
	} {
		m, err := value.ParseDecimal(tt.amount)
		if err != nil {
			t.Fatal(err)
		}
		d := Of(m)
		if back, err := Money(d); err != nil || back != m || !d.Equal(decimal.RequireFromString(tt.amount)) {
			t.Errorf("%s: %s, %s, %v", tt.reason, d, back, err)
		}
		// Both are the same argument of a query, and the same column.
		var equal bool
		var read decimal.Decimal
		if err := pool.QueryRow(t.Context(), `select $1::numeric = $2::numeric, $1::numeric`, m, d).Scan(&equal, &read); err != nil || !equal || !read.Equal(d) {
			t.Errorf("%s, in Postgres: %t, %s, %v", tt.reason, equal, read, err)
		}
	}
}

func TestAnAmountOfTooManyDigitsIsAnError(t *testing.T) {
	t.Parallel()
	for reason, text := range map[string]string{"before the point": "12345678901234567890", "after the point": "0.1234567890123456789"} {
		if m, err := Money(decimal.RequireFromString(text)); err == nil {
			t.Errorf("%s: it becomes %s", reason, m)
		}
	}
}
