package prune

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// began is the first day of each case.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// run is one run of Prune, at an hour of the database's clock since began.
type run struct {
	at     int
	arrive map[int]int64 // done events that were stored before it, by their day of arrival
	hidden bool          // the rows cannot be found
	want   string        // "events", "parked" and "bodies" with the days that are forgotten, or "refused"
}

const refused = "refused"

// The rows that a run forgets, by the clock and the counts of earlier ones. On day 0 three events arrive: two
// of them are done, one is parked. That day ends at hour 24.
func TestDayIsForgottenAnAgeAfterItsEndByTheClockOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	twoDays := Ages{Events: 2 * day}
	const year = 365 * 24
	for reason, c := range map[string]struct {
		ages Ages
		runs []run
	}{
		"the first run has no earlier clock":             {Ages{Events: day, Parked: day, Archived: day}, []run{{at: 2400}}},
		"the second one has that of the first":           {twoDays, []run{{at: 72}, {at: 96, want: "events 0"}}},
		"the earlier clock is an hour too early":         {twoDays, []run{{at: 71}, {at: 95}, {at: 119, want: "events 0"}}},
		"22 hours are no day between two runs":           {twoDays, []run{{at: 2400}, {at: 2422}, {at: 2423, want: "events 0"}}},
		"runs between them postpone nothing":             {twoDays, []run{{at: 2400}, {at: 2408}, {at: 2416}, {at: 2423, want: "events 0"}}},
		"runs that are weeks apart":                      {twoDays, []run{{at: 24}, {at: 240}, {at: 480, want: "events 0"}}},
		"each day has its own end":                       {twoDays, []run{{at: 72, arrive: map[int]int64{1: 5}}, {at: 96, want: "events 0"}, {at: 120, want: "events 1"}}},
		"a day that is not over gets more: not late":     {twoDays, []run{{at: 12}, {at: 40, arrive: map[int]int64{0: 5}}, {at: 72}, {at: 96, want: "events 0"}}},
		"events were deleted by hand: the rest not late": {twoDays, []run{{at: 48}, {at: 72, arrive: map[int]int64{0: -1}}, {at: 96, want: "events 0"}}},

		"without an age nothing ever goes": {Ages{}, []run{{at: 10 * year}, {at: 20 * year}, {at: 30 * year}}},
		"an age of an hour: whole days go": {Ages{Events: time.Hour}, []run{{at: 24}, {at: 48}, {at: 72, want: "events 0"}}},
		"an age of ten years":              {Ages{Events: 10 * year * time.Hour}, []run{{at: 10 * year}, {at: 10*year + 24}, {at: 10*year + 48, want: "events 0"}}},
		"parked ones have their own age, and those that are left then are not late": {
			Ages{Events: 2 * day, Parked: 10 * day},
			[]run{{at: 72}, {at: 96, want: "events 0"}, {at: 264}, {at: 288, want: "parked 0"}},
		},
		"bodies have their own, and their events stay": {
			Ages{Events: 10 * day, Archived: 2 * day},
			[]run{{at: 72}, {at: 96, want: "bodies 0"}, {at: 264, want: "bodies 0"}, {at: 288, want: "events 0, bodies 0"}},
		},

		"the clock jumps a year forwards: nothing goes by that clock alone": {
			twoDays, []run{{at: 24}, {at: 48}, {at: year}, {at: year + 1}, {at: year + 22}},
		},
		"it is right: the time has passed": {twoDays, []run{{at: 24}, {at: 48}, {at: year}, {at: year + 23, want: "events 0"}}},
		"it jumps forwards and back":       {twoDays, []run{{at: 24}, {at: 48}, {at: year}, {at: 49, want: refused}, {at: year - 2, want: refused}, {at: year - 1}}},
		"it is set back by an hour":        {twoDays, []run{{at: 2400}, {at: 2399}, {at: 2422}, {at: 2423, want: "events 0"}}},
		"events came while it was behind: they are kept for their age since that was found": {
			twoDays,
			[]run{
				{at: 240},
				{at: 264, arrive: map[int]int64{0: 1}},
				{at: 288},
				{at: 312},
				{at: 334},
				{at: 335, want: "events 0"},
			},
		},
		"events came after others of their day were forgotten": {
			twoDays,
			[]run{{at: 72}, {at: 96, want: "events 0"}, {at: 120, arrive: map[int]int64{0: 1}}, {at: 144}, {at: 168}, {at: 192, want: "events 0"}},
		},
		"the clock was behind when the first events came": {twoDays, []run{{at: 240}, {at: 264, want: "events 0"}}},

		"a partition is detached during a run and attached again: its events may be new": {
			twoDays,
			[]run{{at: 48}, {at: 240, hidden: true}, {at: 264}, {at: 288}, {at: 312}, {at: 336, want: "events 0"}},
		},
		"it is detached for good": {twoDays, []run{{at: 48}, {at: 240, hidden: true}, {at: 264, hidden: true}}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			rows := map[int]store.DayOf{0: {Day: began, Events: 3, Closed: 2, Parked: 1}}
			var runs store.PruneRuns
			for _, r := range c.runs {
				for n, more := range r.arrive {
					d := rows[n]
					rows[n] = store.DayOf{Day: began.AddDate(0, 0, n), Events: d.Events + more, Closed: d.Closed + more, Parked: d.Parked}
				}
				p := &Plan{ages: c.ages, runs: runs, counted: map[time.Time]store.DayOf{}}
				for _, d := range rows {
					if d.Events > 0 && !r.hidden {
						p.counted[d.Day] = d
					}
				}
				if got := p.forgetAt(t, began.Add(time.Duration(r.at)*time.Hour), rows); got != r.want {
					t.Errorf("the run at hour %d forgets %q, want %q", r.at, got, r.want)
				}
				runs = p.runs
			}
		})
	}
}

// forgetAt runs the plan at a time, deletes the rows that it forgets, and returns their days in words.
func (p *Plan) forgetAt(t *testing.T, now time.Time, rows map[int]store.DayOf) string {
	t.Helper()
	if p.isAheadOf(now) {
		return refused
	}
	p.choose(now)
	var said []string
	say := func(name string, days []time.Time, count func(store.DayOf) int64) (found []int) {
		for _, d := range days {
			if n := int(d.Sub(began) / day); count(rows[n]) > 0 {
				found = append(found, n)
			}
		}
		slices.Sort(found)
		if len(found) > 0 {
			said = append(said, name+" "+strings.Trim(fmt.Sprint(found), "[]"))
		}
		return found
	}
	var gone int64
	for _, n := range say("events", p.closed, func(d store.DayOf) int64 { return d.Closed }) {
		d := rows[n]
		rows[n], gone = store.DayOf{Day: d.Day, Events: d.Events - d.Closed, Parked: d.Parked}, gone+d.Closed
	}
	for _, n := range say("parked", p.parked, func(d store.DayOf) int64 { return d.Parked }) {
		d := rows[n]
		rows[n], gone = store.DayOf{Day: d.Day, Events: d.Events - d.Parked, Closed: d.Closed}, gone+d.Parked
	}
	say("bodies", p.archive, func(d store.DayOf) int64 { return d.Events })
	if p.Events != gone {
		t.Errorf("the run at %s counts %d events, and forgets %d", now, p.Events, gone)
	}
	return strings.Join(said, ", ")
}
