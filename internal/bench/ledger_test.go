package main

import (
	"strings"
	"testing"
)

func TestLedgerFindsEveryDifference(t *testing.T) {
	t.Parallel()
	const a, b = 7, 7 + charges // two events of one charge
	charge := newEvents("run").charge(a)
	for _, tt := range []struct {
		why   string
		found []effects
		says  string
	}{
		{"all is well", []effects{{charge, 2, cents(a) + cents(b)}}, ""},
		{"charges of others", []effects{{charge, 2, cents(a) + cents(b)}, {"pay_1", 1, 5}, {"pay_other_7", 1, 5}}, ""},
		{"both lost", nil, "the database has 0 of 0 cents"},
		{"one lost", []effects{{charge, 1, cents(a)}}, "has 1 of"},
		{"one doubled", []effects{{charge, 3, 2*cents(a) + cents(b)}}, "has 3 of"},
		{"one lost, the other doubled", []effects{{charge, 2, 2 * cents(a)}}, "has 2 of"},
		{"an effect of what was not acknowledged", []effects{{charge, 2, cents(a) + cents(b)}, {"pay_run_8", 1, cents(8)}}, "pay_run_8: 0 payments"},
		{"a charge that no event is about", []effects{{charge, 2, cents(a) + cents(b)}, {"pay_run_10000", 1, 5}}, "of no event"},
		{"two rows of a charge", []effects{{charge, 2, cents(a) + cents(b)}, {charge, 1, 5}}, "there twice"},
	} {
		l := &ledger{events: newEvents("run")}
		l.book(a)
		l.book(b)
		got := strings.Join(l.differences(tt.found), "\n")
		if (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s: the differences are %q, want %q", tt.why, got, tt.says)
		}
	}
}
