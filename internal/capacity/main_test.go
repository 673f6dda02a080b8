package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

func open(t *testing.T) recorded {
	t.Helper()
	r, err := recordings()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"inline", "hand", "hand3", "ingest", "insert", "inbox", "naive"} {
		if m := r.mode(name); m.Rate == 0 || m.Here == 0 || m.Postgres == 0 || m.Trips == 0 {
			t.Fatalf("load.json does not have all of mode %s: record all modes, on Linux, with a Postgres on this machine", name)
		}
	}
	for _, mode := range modes {
		for _, ids := range []string{ascending, random} {
			if bytes, _ := r.beside(mode, ids); bytes <= 0 {
				t.Fatalf("log.json does not have mode %s with %s ids", mode, ids)
			}
		}
	}
	return r
}

// says fails the test if a document lacks a text.
func says(t *testing.T, document, text string) {
	t.Helper()
	content, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), text) {
		t.Errorf("%s differs from what is recorded: put there\n%s", document, text)
	}
}

func TestTheTableOfScaleIsComputedFromWhatIsRecorded(t *testing.T) {
	t.Parallel()
	r := open(t)
	lines := []string{header}
	for _, rate := range []float64{10, 1000, 100_000} {
		for _, m := range modes {
			lines = append(lines, assumed.need(r, m, ascending, rate).String())
		}
	}
	says(t, "docs/scale.md", strings.Join(lines, "\n"))
	for _, assumption := range []string{
		fmt.Sprintf("%.1f ms for a round trip", assumed.trip.Seconds()*1000),
		fmt.Sprintf("%.0f ms for a commit", assumed.commit.Seconds()*1000),
		fmt.Sprintf("bodies of %.0f kB", assumed.body/1000),
		fmt.Sprintf("%.0f days", assumed.days),
		fmt.Sprintf("%.0f cores", assumed.cores),
	} {
		says(t, "docs/scale.md", assumption)
	}
}

func TestTheLogAndTheRowsOfScaleAreThoseRecorded(t *testing.T) {
	t.Parallel()
	r := open(t)
	inline, _ := r.beside("inline", ascending)
	inbox, _ := r.beside("inbox", ascending)
	randomInline, _ := r.beside("inline", random)
	randomInbox, _ := r.beside("inbox", random)
	says(t, "docs/scale.md", fmt.Sprintf("%s inline, %s beside its", size(inline), size(inbox)))
	says(t, "docs/scale.md", fmt.Sprintf("add %s**", size(randomInline-inline)))
	says(t, "docs/scale.md", fmt.Sprintf("%s inline, %s in an inbox with a body of %s", size(randomInline), size(randomInbox+r.log.Body), size(r.log.Body)))
	says(t, "docs/scale.md", fmt.Sprintf("%.0f bytes, with its indexes", r.log.Row))
}

func TestTheTableOfTheBenchmarksIsTheRecordedRun(t *testing.T) {
	t.Parallel()
	r := open(t)
	var of []mode
	for _, name := range []string{"inline", "hand", "hand3", "ingest", "insert", "inbox", "naive"} {
		of = append(of, r.mode(name))
	}
	for _, row := range []struct {
		name string
		cell func(mode) string
	}{
		{"events/s answered", func(m mode) string { return number(m.Rate) }},
		{"end to end/s", func(m mode) string {
			switch {
			case m.Name == "ingest" || m.Name == "insert":
				return ""
			case m.EndToEnd == 0:
				return number(m.Rate)
			}
			return number(m.EndToEnd)
		}},
		{"p99 of the answer, ms", func(m mode) string { return number(m.P99) }},
		{"round trips for an event", func(m mode) string { return fmt.Sprintf("%.2f", m.Trips) }},
		{"processor time here, µs", func(m mode) string { return number(m.Here) }},
		{"in Postgres, µs", func(m mode) string { return number(m.Postgres) }},
	} {
		var line strings.Builder
		line.WriteString("| " + row.name + " |")
		for _, m := range of {
			line.WriteString(strings.TrimSuffix(" "+row.cell(m), " ") + " |")
		}
		says(t, "BENCHMARKS.md", line.String())
	}
	says(t, "BENCHMARKS.md", fmt.Sprintf("Inline is %.2f of four trips and %.2f of three, ingest %.2f of one INSERT, and the inbox, end to end, %.2f of the naive one",
		of[0].Rate/of[1].Rate, of[0].Rate/of[2].Rate, of[3].Rate/of[4].Rate, of[5].EndToEnd/of[6].EndToEnd))
}

// The model's processors are right if nothing else holds the modes up: on a machine
// whose processors were all busy, a mode's rate is what its processor times allow.
func TestTheRecordedRatesAreWhatTheirProcessorTimesAllow(t *testing.T) {
	t.Parallel()
	r := open(t)
	var processors float64
	if _, err := fmt.Sscanf(r.load.Machine, "%f x ", &processors); err != nil {
		t.Fatalf("load.json does not say how many processors the machine has, but %q: %v", r.load.Machine, err)
	}
	least, most := math.Inf(1), 0.0
	for _, name := range []string{"inline", "ingest", "inbox"} {
		m := r.mode(name)
		rate := m.Rate
		if name == "inbox" {
			rate = m.EndToEnd
		}
		share := rate * (m.here() + m.there()).Seconds() / processors
		if share < 0.9 || share > 1 {
			t.Errorf("%s: the recorded rate is %.2f of what the model allows, want 0.9 to 1", name, share)
		}
		least, most = min(least, share), max(most, share)
	}
	says(t, "docs/scale.md", fmt.Sprintf("%.2f to %.2f of what %.0f cores", least, most, processors))
}
