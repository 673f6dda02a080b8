package main

import (
	"strings"
	"testing"
)

func TestDayEndsAsItShould(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	said := strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "\n", " | ")), " ")
	for _, line := range []string{
		"Asaas PAYMENT_RECEIVED A-1001, ten at once 1 x 200, 9 x 200 duplicate |",
		"Asaas PAYMENT_RECEIVED A-1001, forged: a guessed token 1 x 401 wrong_token |",
		"Asaas PAYMENT_BANK_SLIP_VIEWED the shop ignores it 1 x 200 |",
		"At noon these are not done: | | SOURCE TYPE STATE LAST_ERROR | asaas TRANSFER_DONE unhandled | zeltapay payment.success pending its order is not stored | |",
		"Zelta Pay payment.success Z-2001 in the other layout 1 x 200 |",
		"Zelta Pay payment.success Z-2002, ten at once 1 x 200, 9 x 200 duplicate |",
		"| A-1001 149.90 149.90 BRL | A-1002 1200.00 0.00 BRL | A-1003 59.90 39.90 BRL | A-1004 75.50 0.00 BRL | Z-2001 49.00 49.00 USD | Z-2002 25.00 25.00 USD |",
		"29.90 | | The events: | | SOURCE STATE EVENTS | asaas done 10 | asaas unhandled 1 | zeltapay done 3 |",
	} {
		if !strings.Contains(said, line) {
			t.Errorf("the output lacks\n%s", line)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
