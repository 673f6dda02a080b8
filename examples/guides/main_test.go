package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// rows are the lines of a table.
func rows(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestTheTablesOfTheGuideAreWhatTheProgramPrints(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	var out strings.Builder
	if err := compare(t.Context(), pool, &out); err != nil {
		t.Fatal(err)
	}
	if err := penalty(t.Context(), pool, &out); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/from-the-guides.md")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(rows(string(guide)), "\n")
	for _, row := range rows(out.String()) {
		if !strings.Contains(said, row) {
			t.Errorf("docs/from-the-guides.md does not have:\n%s", row)
		}
	}
}

func TestBothModesSurviveEveryFault(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := compare(t.Context(), idemtest.Pool(t), &out); err != nil {
		t.Fatal(err)
	}
	all := rows(out.String())
	want := []string{"| idem.Processor | ok | ok | ok | ok |", "| idem.Inbox | ok | ok | ok | ok |"}
	if diff := cmp.Diff(want, all[len(all)-2:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := strings.Count(out.String(), "ok | ok | ok | ok"); n != 2 {
		t.Errorf("%d schemes survive: a fault that harms nothing tests nothing", n)
	}
}
