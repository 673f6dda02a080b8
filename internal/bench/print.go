package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// print writes the report for people, or as JSON.
func (r *report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	var b strings.Builder
	r.head(&b)
	r.table(&b)
	for _, q := range r.Ratios {
		fmt.Fprintf(&b, "%s to %s: %.2f\n", q.Of, q.To, q.Value)
	}
	r.verdict(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *report) head(b *strings.Builder) {
	fmt.Fprintf(b, "%s, %s, %s\n%s\n", r.Started.Format("2006-01-02 15:04"), r.Go, r.Machine, r.Command)
	if p := r.Postgres; p != nil {
		fmt.Fprintf(b, "%s, fsync %s, one commit alone takes %.2f ms\n", p.Origin, p.Fsync, p.Commit)
	}
	b.WriteString("\n")
}

// rows are the lines of the table; an empty cell is unknown.
var rows = []struct {
	name string
	cell func(result) string
}{
	{"events", func(m result) string { return fmt.Sprint(m.Events) }},
	{"events/s", func(m result) string { return number(m.Rate, 0) }},
	{"end to end/s", func(m result) string { return number(m.EndToEnd, 0) }},
	{"p50 ms", func(m result) string { return number(m.P50, 2) }},
	{"p99 ms", func(m result) string { return number(m.P99, 2) }},
	{"p99.9 ms", func(m result) string { return number(m.P999, 2) }},
	{"max ms", func(m result) string { return number(m.Max, 2) }},
	{"duplicates p50 ms", func(m result) string { return number(m.DuplicatesP50, 2) }},
	{"not 200", func(m result) string { return fmt.Sprint(m.Not200) }},
	{"round trips/event", func(m result) string { return number(m.Trips, 2) }},
	{"cpu/event here µs", func(m result) string { return number(m.CPU, 0) }},
	{"cpu/event postgres µs", func(m result) string { return number(m.PostgresCPU, 0) }},
	{"heap first MB", func(m result) string { return number(m.HeapFirst, 1) }},
	{"heap last MB", func(m result) string { return number(m.HeapLast, 1) }},
	{"rss MB", func(m result) string { return number(m.RSS, 0) }},
	{"goroutines", func(m result) string { return fmt.Sprint(m.Goroutines) }},
	{"ledger", ledgerCell},
}

func number(v float64, decimals int) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.*f", decimals, v)
}

func ledgerCell(m result) string {
	switch {
	case !m.Checked:
		return "not checked"
	case m.DifferentCount > 0:
		return "WRONG"
	}
	return "right"
}

func (r *report) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, cell func(result) string) {
		fmt.Fprint(w, name, "\t")
		for _, m := range r.Modes {
			fmt.Fprint(w, cell(m), "\t")
		}
		fmt.Fprintln(w)
	}
	line("", func(m result) string { return m.Mode })
	for _, row := range rows {
		line(row.name, row.cell)
	}
	_ = w.Flush() // a strings.Builder takes everything
	b.WriteString("\n")
}

func (r *report) verdict(b *strings.Builder) {
	if r.Interrupted {
		b.WriteString("it was interrupted: the numbers are of the turns so far\n")
	}
	for _, m := range r.Modes {
		if m.Not200 > 0 {
			fmt.Fprintf(b, "%s: %d deliveries were repeated, the last because %s\n", m.Mode, m.Not200, m.LastFailure)
		}
		if m.Open > 0 {
			fmt.Fprintf(b, "%s: %d events were never acknowledged\n", m.Mode, m.Open)
		}
		if m.DifferentCount > 0 {
			fmt.Fprintf(b, "%s: %d charges have lost or doubled payments:\n", m.Mode, m.DifferentCount)
		}
		for _, d := range m.Differences {
			fmt.Fprintf(b, "\t%s\n", d)
		}
	}
}
