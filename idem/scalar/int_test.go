package scalar_test

import (
	"encoding/json"
	"testing"

	"github.com/paghooks/paghooks/idem/scalar"
)

// encoding/json never hands these on; other decoders may.
func TestNumbersRefuseWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{"", "abc", `"`, `"1`, "1\n", "\x00"} {
		var d scalar.Decimal
		var n scalar.Int
		var c scalar.Cents
		if d.UnmarshalJSON([]byte(literal)) == nil || n.UnmarshalJSON([]byte(literal)) == nil || c.UnmarshalJSON([]byte(literal)) == nil {
			t.Errorf("%q is read as %s, %d and %d", literal, d, n, c)
		}
	}
	var n scalar.Int
	if err := json.Unmarshal([]byte(`1e2`), &n); err != nil || n != 100 {
		t.Errorf("1e2 is %d, %v", n, err)
	}
}
