package main

import (
	"strings"
	"testing"
)

func TestTheWeekendEndsWithEachPaymentBookedOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	rest := out.String()
	for _, line := range []string{
		"Fri 17:00  the shop is deployed\n           2 deliveries taken, 0 refused\n",
		"Fri 21:00  it is deployed without its token\n           0 deliveries taken, 5 refused\n",
		"Fri 21:10  Asaas writes an e-mail: 5 attempts failed\n",
		"Sat 09:50  Asaas writes an e-mail: 15 attempts failed\nSat 09:50  Asaas stops the queue\n",
		"Mon 09:00  on call: Asaas says of the webhook \"shop\": stopped true, 15 failures\n",
		"Mon 09:00  on call: asaas: Recover(", "nothing was changed",
		"Mon 09:00  it is deployed with its token\n",
		"Mon 09:00  Asaas starts the queue\n",
		"           35 deliveries taken, 0 refused\n",
		"Mon 10:00  on call: 0 events wait in the queue\n",
		"Each of the 37 payments is booked once.\n",
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Errorf("the output lacks, in its place: %s", line)
			continue
		}
		rest = after
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
