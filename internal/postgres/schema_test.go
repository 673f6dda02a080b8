package postgres

import (
	"regexp"
	"testing"
)

var plain = regexp.MustCompile(`^idemtest_[a-z0-9_]{13,53}$`) // an identifier has 63 bytes

func FuzzSchemaNameNeedsNoQuotes(f *testing.F) {
	f.Add("TestPaid/twice_à la carte")
	f.Add("")
	f.Fuzz(func(t *testing.T, of string) {
		a, b := uniqueName(of), uniqueName(of)
		if !plain.MatchString(a) || a == b {
			t.Errorf("%q, then %q", a, b)
		}
	})
}
