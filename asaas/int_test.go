package asaas_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
)

func TestEverySpellingOfAWholeNumberIsRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		literal string
		want    asaas.Int
	}{
		{`0`, 0}, {`0.0`, 0}, {`5.00`, 5}, {`-7`, -7}, {`1e2`, 100}, {`1.5e1`, 15}, {`"5"`, 5}, {`999999999999999999`, 999999999999999999},
	} {
		var got asaas.Int
		if err := json.Unmarshal([]byte(tt.literal), &got); err != nil || got != tt.want {
			t.Errorf("%s: got %d, %v", tt.literal, got, err)
		}
	}
}

func TestWhatIsNoWholeNumberIsRefused(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]string{
		`1.5`:                 "number with a fraction",
		`"0.1"`:               "number with a fraction",
		`1e400`:               "number of more than 18 digits",
		`9223372036854775808`: "number of more than 18 digits",
		`"five"`:              "string that is not a number",
		`false`:               "bool",
	} {
		got := asaas.Int(7)
		err := json.Unmarshal([]byte(literal), &got)
		if err == nil || !strings.Contains(err.Error(), want) || got != 7 {
			t.Errorf("%s: got %d and error %v, want one about a %s", literal, got, err, want)
		}
	}
}

func TestAnErrorInANumberTellsItsPath(t *testing.T) {
	t.Parallel()
	_, err := asaas.Parse([]byte(`{"event":"PAYMENT_OVERDUE","payment":{"id":"pay_1","discount":{"dueDateLimitDays":1.5}}}`))
	var typeError *json.UnmarshalTypeError
	if !errors.As(err, &typeError) || typeError.Field != "payment.discount.dueDateLimitDays" {
		t.Errorf("got %v, want the path payment.discount.dueDateLimitDays", err)
	}
}

// encoding/json never hands these on; somebody else may.
func TestWhatIsNoJSONIsRefused(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{"", "abc", `"`, `"1`, "1\n", "\x00"} {
		var d asaas.Decimal
		var n asaas.Int
		if d.UnmarshalJSON([]byte(literal)) == nil || n.UnmarshalJSON([]byte(literal)) == nil {
			t.Errorf("%q is read as %s and %d", literal, d, n)
		}
	}
}
