package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"
)

// report is the result of a run. In its JSON, unknown values are absent.
type report struct {
	Started     time.Time      `json:"started"`
	Command     string         `json:"command"`
	Machine     string         `json:"machine"`
	Go          string         `json:"go"`
	Postgres    *databaseAbout `json:"postgres,omitempty"`
	Modes       []result       `json:"modes"`
	Ratios      []ratio        `json:"ratios,omitempty"` // of events per second
	Interrupted bool           `json:"interrupted,omitempty"`
	Correct     bool           `json:"correct"` // each acknowledged event has one effect, nothing else has one
}

// result is one contender's. Times are in milliseconds, except for those of
// processors, in microseconds.
type result struct {
	Mode           string   `json:"mode"`
	Events         int64    `json:"events"`
	Rate           float64  `json:"events_per_second"`
	EndToEnd       float64  `json:"end_to_end_per_second,omitempty"`
	P50            float64  `json:"p50_ms"`
	P99            float64  `json:"p99_ms"`
	P999           float64  `json:"p999_ms"`
	Max            float64  `json:"max_ms"`
	DuplicatesP50  float64  `json:"duplicates_p50_ms,omitempty"`
	Not200         int64    `json:"not_200"`
	LastFailure    string   `json:"last_failure,omitempty"` // why the last of these was not
	Open           int64    `json:"never_acknowledged"`
	Trips          float64  `json:"round_trips_per_event,omitempty"`
	CPU            float64  `json:"cpu_us_per_event,omitempty"`
	PostgresCPU    float64  `json:"postgres_cpu_us_per_event,omitempty"`
	HeapFirst      float64  `json:"heap_first_mb"`
	HeapLast       float64  `json:"heap_last_mb"`
	RSS            float64  `json:"rss_mb,omitempty"`
	Goroutines     int      `json:"goroutines"`
	Checked        bool     `json:"ledger_checked"`
	DifferentCount int      `json:"ledger_differences"`
	Differences    []string `json:"first_differences,omitempty"`
}

// ratio is the number of events that one mode does in the time of one of another.
type ratio struct {
	Of    string  `json:"of"`
	To    string  `json:"to"`
	Value float64 `json:"value"`
}

func newReport(start time.Time, c *config, d *database) *report {
	r := &report{
		Started: start.UTC().Truncate(time.Second),
		Command: c.command,
		Machine: fmt.Sprintf("%d x %s, %s/%s", runtime.NumCPU(), cmp.Or(processor(), "unknown"), runtime.GOOS, runtime.GOARCH),
		Go:      runtime.Version(),
	}
	if d != nil {
		r.Postgres = &d.about
	}
	return r
}

// add adds a contender's result, and compares its ledger.
func (r *report) add(ctx context.Context, one *contender) error {
	a := &one.account
	m := result{
		Mode: one.mode, Events: a.events, Rate: perSecond(a.events, a.answering),
		P50: milliseconds(one.answers.quantile(0.5)), P99: milliseconds(one.answers.quantile(0.99)),
		P999: milliseconds(one.answers.quantile(0.999)), Max: milliseconds(one.answers.max()),
		DuplicatesP50: milliseconds(one.repeats.quantile(0.5)),
		Not200:        one.not200.Load(), Open: one.open.Load(),
		Trips: perEvent(float64(a.trips), a.events), CPU: perEvent(microseconds(a.here), a.events),
		PostgresCPU: perEvent(microseconds(a.postgres), a.events),
		HeapFirst:   megabytes(a.heapBefore), HeapLast: megabytes(a.heapLast), RSS: megabytes(a.rss), Goroutines: a.goroutines,
	}
	m.LastFailure, _ = one.failure.Load().(string)
	if one.settle != nil {
		m.EndToEnd = perSecond(a.events, a.settling)
	}
	differences, err := one.check(ctx)
	m.Checked, m.DifferentCount = one.books != nil && err == nil, len(differences)
	m.Differences = differences[:min(len(differences), 10)]
	r.Modes = append(r.Modes, m)
	return err
}

// check compares the contender's ledger with its database.
func (one *contender) check(ctx context.Context) (differences []string, err error) {
	if one.finish != nil {
		if err := one.finish(ctx); err != nil {
			return nil, err
		}
	}
	if one.books == nil {
		return nil, nil
	}
	for end := time.Now().Add(one.late); ; time.Sleep(time.Second) {
		differences, err = one.ledger.compare(ctx, one.books, one.query)
		if err != nil || len(differences) == 0 || time.Now().After(end) {
			return differences, err
		}
	}
}

// endToEnd, behind a mode, is its rate until its events are done.
const endToEnd = " end to end"

// compared are the ratios that say something.
var compared = [][2]string{
	{"inline", "hand"},
	{"inline", "hand3"},
	{"ingest", "insert"},
	{"inbox" + endToEnd, "naive" + endToEnd},
	{"inbox" + endToEnd, "inline"},
	{"inline", against},
	{"inbox" + endToEnd, against},
}

// conclude adds the ratios, and whether all is correct.
func (r *report) conclude() {
	rates := make(map[string]float64)
	r.Correct = true
	for _, m := range r.Modes {
		rates[m.Mode] = m.Rate
		if m.EndToEnd > 0 {
			rates[m.Mode+endToEnd] = m.EndToEnd
		}
		r.Correct = r.Correct && m.Open == 0 && m.DifferentCount == 0
	}
	for _, c := range compared {
		if of, to := rates[c[0]], rates[c[1]]; of > 0 && to > 0 {
			r.Ratios = append(r.Ratios, ratio{c[0], c[1], of / to})
		}
	}
}

func perSecond(events int64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(events) / took.Seconds()
}

func perEvent(total float64, events int64) float64 {
	if events == 0 {
		return 0
	}
	return total / float64(events)
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
func microseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }
func megabytes(bytes uint64) float64       { return float64(bytes) / (1 << 20) }
