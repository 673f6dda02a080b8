package spec

import "testing"

// The golden files of ../testdata/good/shared have the code that follows.
func TestAnAmountIsPlainOnlyWhereEveryEventIsParkedWithoutIt(t *testing.T) {
	t.Parallel()
	s, err := Load("../testdata/good/shared/spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		schema, property string
		plain            bool
		why              string
	}{
		{"Charge", "value", true, "both events need it"},
		{"EarlierCharge", "value", false, "it is a schema of its own, and no event needs it"},
		{"Pix", "value", false, "one of two events needs it"},
		{"Refund", "value", false, "a list has it as well"},
		{"Leg", "value", false, "the leg inside of a leg has it as well"},
		{"Side", "value", true, "it is needed in both places"},
		{"Side", "fee", false, "it is needed in one of two places"},
		{"TransactionEvent", "total", true, "the one event that has it needs it"},
		{"Envelope", "gross", true, "both events need it"},
		{"Envelope", "net", false, "one of two events needs it"},
	} {
		if got := !s.MayLack(s.Schemas()[tt.schema].Value, tt.property); got != tt.plain {
			t.Errorf("%s.%s is plain: %t, want %t, as %s", tt.schema, tt.property, got, tt.plain, tt.why)
		}
	}
}
