package value_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/value"
)

func decimal(t testing.TB, s string) value.Decimal {
	t.Helper()
	d, err := value.ParseDecimal(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return d
}

func TestEverySpellingOfANumberIsRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ literal, want, reason string }{
		{`10.0`, "10.00", "one decimal, as Asaas writes most amounts"},
		{`8.01`, "8.01", "two decimals"},
		{`100`, "100.00", "no decimals"},
		{`0.02`, "0.02", "less than one"},
		{`0.00`, "0.00", "nothing"},
		{`-0.0`, "0.00", "nothing, with a sign"},
		{`-3.5`, "-3.50", "a debit"},
		{`1e2`, "100.00", "an exponent"},
		{`1E+2`, "100.00", "an exponent with a sign"},
		{`1.5e-3`, "0.0015", "a negative exponent"},
		{`0e999999999999`, "0.00", "nothing, however often multiplied"},
		{`12.345`, "12.345", "more than cents: a rate"},
		{`"29.90"`, "29.90", "the same inside a string"},
		{`1.50000000000000000000000000000000000000000`, "1.50", "zeros without end"},
		{`999999999999999999`, "999999999999999999.00", "18 digits"},
		{`0.000000000000000001`, "0.000000000000000001", "18 decimals"},
		{`1` + strings.Repeat("0", 1000) + `e-1000`, "1.00", "a long way to write 1"},
	} {
		var got value.Decimal
		if err := json.Unmarshal([]byte(tt.literal), &got); err != nil {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if got.String() != tt.want {
			t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want)
		}
	}
}

func TestWhatIsNoExactNumberIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ literal, want, reason string }{
		{`1e400`, "number of more than 18 digits", "more than any amount"},
		{`1e-400`, "number of more than 18 digits", "less than any amount"},
		{`1e99999999999999999999`, "number of more than 18 digits", "an exponent that overflows"},
		{`1000000000000000000`, "number of more than 18 digits", "19 digits"},
		{`0.1234567890123456789`, "number of more than 18 digits", "19 decimals"},
		{`1` + strings.Repeat("0", 1<<16), "number of more than 18 digits", "a very long number"},
		{`"10,50"`, "string that is not a number", "a decimal comma"},
		{`""`, "string that is not a number", "nothing at all"},
		{`" 1"`, "string that is not a number", "a space"},
		{`"NaN"`, "string that is not a number", "no number"},
		{`"0x10"`, "string that is not a number", "hexadecimal"},
		{`"1_000"`, "string that is not a number", "separators"},
		{`"+1"`, "string that is not a number", "a plus sign"},
		{`"01"`, "string that is not a number", "a zero in front"},
		{`"1."`, "string that is not a number", "a point at the end"},
		{`".5"`, "string that is not a number", "a point at the start"},
		{`"1e"`, "string that is not a number", "an exponent without digits"},
		{`"0e1x"`, "string that is not a number", "more than a number"},
		{`true`, "bool", "a boolean"},
		{`[1]`, "array", "a list"},
		{`{}`, "object", "an object"},
	} {
		got := value.OfCents(1)
		err := json.Unmarshal([]byte(tt.literal), &got)
		if err == nil || !strings.Contains(err.Error(), "cannot unmarshal "+tt.want+" into") {
			t.Errorf("%s: got error %v, want one about a %s", tt.reason, err, tt.want)
		}
		if got != value.OfCents(1) {
			t.Errorf("%s: the Decimal became %s", tt.reason, got)
		}
	}
}

func TestNullLeavesANumberAlone(t *testing.T) {
	t.Parallel()
	d, n := value.OfCents(1050), value.Int(7)
	if err := errors.Join(json.Unmarshal([]byte(`null`), &d), json.Unmarshal([]byte(`null`), &n)); err != nil {
		t.Error(err)
	}
	if d != value.OfCents(1050) || n != 7 {
		t.Errorf("got %s and %d", d, n)
	}
}

func TestEqualNumbersAreEqual(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"10.5", "10.50", "10.500000", "1.05e1", "105e-1", "1050e-2"} {
		if got := decimal(t, spelling); got != value.OfCents(1050) || !got.Equal(value.OfCents(1050)) {
			t.Errorf("%s is not R$ 10.50", spelling)
		}
	}
	if diff := cmp.Diff(decimal(t, "100"), decimal(t, "1e2")); diff != "" {
		t.Error(diff)
	}
	if decimal(t, "0") != (value.Decimal{}) || decimal(t, "-0.00") != value.OfCents(0) {
		t.Error("0 is not the zero Decimal")
	}
}

func TestCentsAreExact(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		amount string
		want   int64
		ok     bool
	}{
		{"10.50", 1050, true},
		{"8.01", 801, true},
		{"0.1", 10, true},
		{"-0.05", -5, true},
		{"100", 10000, true},
		{"19.99", 1999, true}, // 1998.9999999999998 as a float
		{"0", 0, true},
		{"92233720368547758", 9223372036854775800, true},
		{"92233720368547758.07", 0, false}, // 19 digits: no Decimal
		{"92233720368547759", 0, false},
		{"999999999999999999", 0, false},
		{"0.005", 0, false},
		{"1.001", 0, false},
	} {
		d, err := value.ParseDecimal(tt.amount)
		if err != nil {
			if tt.ok {
				t.Errorf("%s: %v", tt.amount, err)
			}
			continue
		}
		var got int64
		if panicked := panics(func() { got = d.Cents() }); got != tt.want || panicked == tt.ok {
			t.Errorf("%s: got %d, panicked %t", tt.amount, got, panicked)
		}
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

func TestAProductIsExact(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, want string }{
		{"10.50", "3", "31.50"},
		{"19.99", "0.0199", "0.397801"},
		{"-0.01", "0.01", "-0.0001"},
		{"0", "-999999999999999999", "0.00"},
		{"0.000000000000000005", "2", "0.00000000000000001"},
		{"999999999999999999", "0.1", "99999999999999999.90"},
		{"500000000000000000", "0.000000000000000002", "1.00"},
		{"0.000000000000000001", "0.1", ""},
		{"999999999999999999", "10", ""},
		{"999999999999999999", "999999999999999999", ""},
	} {
		var got value.Decimal
		if panicked := panics(func() { got = decimal(t, tt.a).Mul(decimal(t, tt.b)) }); panicked != (tt.want == "") {
			t.Errorf("%s * %s is %s, panicked %t", tt.a, tt.b, got, panicked)
		} else if !panicked && got.String() != tt.want {
			t.Errorf("%s * %s is %s, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestAHalfIsRoundedAwayFromZero(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n        string
		decimals int
		want     string
	}{
		{"0.005", 2, "0.01"},
		{"-0.005", 2, "-0.01"},
		{"0.0049", 2, "0.00"},
		{"-0.004", 2, "0.00"},
		{"1.995", 2, "2.00"},
		{"2.5", 0, "3.00"},
		{"-2.5", 0, "-3.00"},
		{"2.4", 0, "2.00"},
		{"10.50", 2, "10.50"},
		{"7", 5, "7.00"},
		{"0.999999999999999999", 17, "1.00"},
		{"0.000000000000000001", 0, "0.00"},
		{"0.9", 0, "1.00"},
	} {
		if got := decimal(t, tt.n).Round(tt.decimals).String(); got != tt.want {
			t.Errorf("%s with %d decimals is %s, want %s", tt.n, tt.decimals, got, tt.want)
		}
	}
	if !panics(func() { value.OfCents(1).Round(-1) }) {
		t.Error("Round(-1) did not panic")
	}
}

func TestAPercentageIsTakenOfAnAmount(t *testing.T) {
	t.Parallel()
	rate := value.PercentOf(decimal(t, "1.99"))
	if got := rate.Of(value.OfCents(1999)); got != decimal(t, "0.397801") || got.Round(2).Cents() != 40 {
		t.Errorf("1.99 %% of 19.99 is %s", got)
	}
	var decoded value.Percent
	if err := json.Unmarshal([]byte(`"1.990"`), &decoded); err != nil || decoded != rate || !rate.Equal(decoded) || decoded.String() != "1.99" {
		t.Errorf("decoded %s, %v", decoded, err)
	}
	if written, err := json.Marshal(rate); err != nil || string(written) != "1.99" || rate.Decimal() != decimal(t, "1.99") || rate.IsZero() {
		t.Errorf("written as %s, %v", written, err)
	}
}

func TestCentsThatAreNoAmountPanic(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{math.MaxInt64, math.MinInt64, 1e18 + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Cents(%d) did not panic", n)
				}
			}()
			value.OfCents(n)
		}()
	}
	if got := value.OfCents(1e18).String(); got != "10000000000000000.00" {
		t.Errorf("got %s", got)
	}
}

func TestASumThatDoesNotFitPanics(t *testing.T) {
	t.Parallel()
	largest, smallest := decimal(t, "999999999999999999"), decimal(t, "0.000000000000000001")
	for _, sum := range []func() value.Decimal{
		func() value.Decimal { return largest.Add(value.OfCents(1)) },
		func() value.Decimal { return largest.Add(largest) },
		func() value.Decimal { return largest.Neg().Sub(largest) },
		func() value.Decimal { return decimal(t, "9").Add(smallest) },
		func() value.Decimal { return largest.Add(smallest) },
		func() value.Decimal { return decimal(t, "9.2").Add(decimal(t, "0.999999999999999999")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the sum did not panic")
				}
			}()
			t.Error(sum())
		}()
	}
	if got := decimal(t, "1").Sub(decimal(t, "0.999999999999999999")); got != smallest {
		t.Errorf("got %s, want %s", got, smallest)
	}
}

// rat reads a number with math/big, for comparison. ok is false for what is
// not a number as JSON spells it.
func rat(s string) (r *big.Rat, ok bool) {
	if !json.Valid([]byte(s)) || strings.Trim(s, "-+.eE0123456789") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"10.0", "-3.5", "1e2", "1e-18", "0e400", "999999999999999999", "01", "1.", "", "-", "1e400", "+1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
			return // math/big would spend its time on the exponent
		}
		d, err := value.ParseDecimal(s)
		want, isNumber := rat(s)
		if err != nil {
			if isNumber && fits(want) {
				t.Errorf("%q is refused: %v", s, err)
			}
			return
		}
		if !isNumber {
			t.Fatalf("%q is read as %s", s, d)
		}
		if got, ok := rat(d.String()); !ok || got.Cmp(want) != 0 {
			t.Errorf("%q is read as %s", s, d)
		}
		if again := decimal(t, d.String()); again != d {
			t.Errorf("%q: %s is read as %s", s, d, again)
		}
		written, err := json.Marshal(d)
		var decoded value.Decimal
		if err != nil || json.Unmarshal(written, &decoded) != nil || decoded != d {
			t.Errorf("%q: written as %s, read as %s", s, written, decoded)
		}
	})
}

// fits tells whether a number is an integer of up to 18 digits divided by a
// power of ten up to 10^18.
func fits(r *big.Rat) bool {
	limit := big.NewInt(1e18)
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(limit))
	if !scaled.IsInt() {
		return false
	}
	digits := strings.TrimRight(scaled.Num().String(), "0")
	if r.IsInt() {
		digits = r.Num().String()
	}
	return len(strings.TrimLeft(digits, "-")) <= 18
}

func FuzzDecimalArithmetic(f *testing.F) {
	f.Add(int64(1050), uint8(2), int64(-5), uint8(0))
	f.Add(int64(999999999999999999), uint8(18), int64(1), uint8(18))
	f.Add(int64(999999999999999999), uint8(0), int64(999999999999999999), uint8(18))
	f.Fuzz(func(t *testing.T, a int64, scaleA uint8, b int64, scaleB uint8) {
		x, y := number(t, a, scaleA), number(t, b, scaleB)
		xr, _ := rat(x.String())
		yr, _ := rat(y.String())
		if got, want := x.Cmp(y), xr.Cmp(yr); got != want {
			t.Errorf("%s.Cmp(%s) = %d, want %d", x, y, got, want)
		}
		if (x == y) != (xr.Cmp(yr) == 0) || x.Equal(y) != (x == y) {
			t.Errorf("%s == %s is %v", x, y, x == y)
		}
		if x.Sign() != xr.Sign() || x.IsZero() != (xr.Sign() == 0) || x.Neg().Neg() != x {
			t.Errorf("%s has sign %d", x, x.Sign())
		}
		sameSum(t, x, y, x.Add, new(big.Rat).Add(xr, yr))
		sameSum(t, x, y, x.Sub, new(big.Rat).Sub(xr, yr))
		sameSum(t, x, y, x.Mul, new(big.Rat).Mul(xr, yr))
		half := new(big.Rat).SetFrac64(int64(x.Sign()), 200)
		cents := new(big.Rat).Mul(new(big.Rat).Add(xr, half), big.NewRat(100, 1))
		whole := new(big.Int).Quo(cents.Num(), cents.Denom())
		if want := new(big.Rat).SetFrac(whole, big.NewInt(100)); fits(want) {
			if got, _ := rat(x.Round(2).String()); got.Cmp(want) != 0 {
				t.Errorf("%s is rounded to %s, want %s", x, x.Round(2), want.FloatString(2))
			}
		}
	})
}

// number is n / 10^scale, cut to what a Decimal holds.
func number(t *testing.T, n int64, scale uint8) value.Decimal {
	r := new(big.Rat).SetFrac(big.NewInt(n%1e18), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale%19)), nil))
	return decimal(t, r.FloatString(18))
}

// sameSum checks that x + y (or x - y) is exact, or panics where it does not fit.
func sameSum(t *testing.T, x, y value.Decimal, add func(value.Decimal) value.Decimal, want *big.Rat) {
	defer func() {
		if r := recover(); (r != nil) == fits(want) {
			t.Errorf("%s and %s: want %s, panic %v", x, y, want.FloatString(18), r)
		}
	}()
	sum := add(y)
	if got, _ := rat(sum.String()); got.Cmp(want) != 0 {
		t.Errorf("%s and %s: got %s, want %s", x, y, sum, want.FloatString(18))
	}
}
