package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// The text says what the arithmetic says.
func TestTheTableInTheDocumentIsComputed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{header}
	for _, rate := range []float64{10, 1000, 100_000} {
		for _, m := range modes {
			lines = append(lines, assumed.need(m, rate).String())
		}
	}
	if table := strings.Join(lines, "\n"); !strings.Contains(string(text), table) {
		t.Errorf("docs/scale.md lacks the table: put there\n%s", table)
	}
	for name, assumption := range map[string]string{
		"trip":     fmt.Sprintf("%.1f ms for a round trip", assumed.trip.Seconds()*1000),
		"commit":   fmt.Sprintf("%.0f ms for a commit", assumed.commit.Seconds()*1000),
		"body":     fmt.Sprintf("bodies of %.0f kB", assumed.body/1000),
		"days":     fmt.Sprintf("%.0f days", assumed.days),
		"cores":    fmt.Sprintf("%.0f cores", assumed.cores),
		"row":      fmt.Sprintf("%.0f bytes", math.Round(row)),
		"app":      fmt.Sprintf("US$ %.0f for a core of the application", assumed.app),
		"postgres": fmt.Sprintf("US$ %.0f for one of Postgres", assumed.postgres),
		"disk":     fmt.Sprintf("US$ %.2f for a GB of disk", assumed.disk),
		"archive":  fmt.Sprintf("US$ %.2f for one of archived log", assumed.archive),
	} {
		if !strings.Contains(string(text), assumption) {
			t.Errorf("docs/scale.md does not say the assumption %s: %s", name, assumption)
		}
	}
}

// What BENCHMARKS.md measured on two cores, with 64 deliveries at once, is what
// their processor times allow: nothing else holds the modes up.
func TestMeasuredRatesAreWhatTheModelPredicts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode     mode
		measured float64
	}{{inline, 2287}, {ingest, 5861}, {inbox, 1275}} {
		if !strings.Contains(string(text), number(c.measured)) {
			t.Errorf("%s: BENCHMARKS.md does not have the rate %s: take the new one and its processor times", c.mode.name, number(c.measured))
		}
		for _, d := range []time.Duration{c.mode.here, c.mode.there} {
			if !strings.Contains(string(text), fmt.Sprintf("| %d |", d.Microseconds())) {
				t.Errorf("%s: BENCHMARKS.md does not have %d µs", c.mode.name, d.Microseconds())
			}
		}
		s := system{workers: 64, processors: 2, work: c.mode.here + c.mode.there}
		if got := c.measured / s.limit(); got < 0.9 || got > 1 {
			t.Errorf("%s: measured is %.2f of what the model allows, want 0.9 to 1", c.mode.name, got)
		}
	}
}

// From one worker, which mostly waits, to more than the processors can serve.
func TestPredictedRatesAreThoseOfASimulatedQueue(t *testing.T) {
	t.Parallel()
	wait := time.Duration(inbox.trips*float64(assumed.trip)) + assumed.commit + inbox.here
	for _, processors := range []int{1, 2, 16} {
		for processes := 1; processes <= 16; processes *= 2 {
			s := system{workers: 6 * processes, processors: processors, wait: wait, work: inbox.there}
			got, want := s.predict(), s.simulate(200_000, rand.New(rand.NewPCG(1, uint64(processes))))
			if math.Abs(got/want-1) > 0.1 {
				t.Errorf("%d processes of 6 workers, %d processors: predicted %.0f events a second, simulated %.0f", processes, processors, got, want)
			}
			if want > 1.02*s.limit() {
				t.Errorf("%d processes, %d processors: simulated %.0f events a second, more than the limit of %.0f", processes, processors, want, s.limit())
			}
		}
	}
}

// More processes help until Postgres is busy, and not from then on.
func TestRateOfMoreProcesses(t *testing.T) {
	t.Parallel()
	wait := time.Duration(inbox.trips*float64(assumed.trip)) + assumed.commit + inbox.here
	rate := func(processes int) float64 {
		return system{workers: 6 * processes, processors: 16, wait: wait, work: inbox.there}.predict()
	}
	if r := rate(4) / rate(1); r < 3.8 {
		t.Errorf("4 processes are %.2f of one, want almost 4", r)
	}
	if r := rate(64) / rate(32); r > 1.1 {
		t.Errorf("64 processes are %.2f of 32, want no more: Postgres is busy", r)
	}
}
