package main

import (
	"strings"
	"testing"
)

func TestEachOrderIsPaidOnceAndToldThoughTheDatabaseCrashes(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, t.Output()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range []string{
		"the payment of order-01 was delivered twice, and answered with 200",
		"Postgres is down.\nthe payment of order-06 was delivered twice, and answered with 200",
		"Each of the 10 orders is paid once, and shipping has heard of each.",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the output lacks\n%s\n%s", line, out.String())
		}
	}
}
