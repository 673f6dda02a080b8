package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestMain lets the test's program be the processes, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		main()
		return
	}
	os.Exit(m.Run())
}

func tiny(standby string) config {
	return config{payments: 60, rate: 10, rounds: 1, receivers: 2, workers: 2, at: 8, standby: standby}
}

func rehearse(t *testing.T, standby string, lines ...string) {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), tiny(standby), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, line := range lines {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(out.String()) {
			t.Errorf("the output lacks the line\n%s\n%s", line, out.String())
		}
	}
}

func TestRehearsalOfASynchronousPromotionLosesNothing(t *testing.T) {
	t.Parallel()
	rehearse(t, "sync",
		`events sent, each until it was answered 200 +240`,
		`effects +240`,
		`acknowledged, and lost by the promotion +0`,
		`lost +0`,
		`doubled +0`,
		`out of order +0`,
		`from the kill of the primary to the next 200 +\S+s`,
		`rate of work done, 2 workers to one +\d+\.\d\d`,
		`Each of the 240 events has one effect\.`,
	)
}

// What the replica had not received comes back.
func TestRehearsalOfAnAsynchronousPromotionEndsWithEachEventDone(t *testing.T) {
	t.Parallel()
	rehearse(t, "async",
		`brought back by the provider's list of events +\d+`,
		`lost +0`,
		`doubled +0`,
		`Each of the 240 events has one effect\.`,
	)
}

func TestLostAndDoubledEventsAreAnError(t *testing.T) {
	t.Parallel()
	for _, r := range []result{{sent: 4, effects: 3, lost: 1}, {sent: 4, effects: 5, doubled: 1}} {
		var out strings.Builder
		if err := r.print(&out, tiny("sync")); err == nil || strings.Contains(out.String(), "one effect") {
			t.Errorf("%+v: %v, want an error\n%s", r, err, out.String())
		}
	}
}
