//go:build long

package promises_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

// A long transaction would keep locks, and all that it deleted from vacuum.
func TestPruneCommitsInSmallBatches(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'done', '2020-01-01' from generate_series(1, 20000) n`)
	s.Exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
		create trigger refuse before delete on idem_events for each row when (old.event = 'notes//19999') execute function refuse()`)
	n, err := s.prunedTwice(s.First)
	if err == nil || !strings.HasPrefix(err.Error(), "idem: pruning events: ") || n < 5000 || n > 19998 {
		t.Errorf("Prune = %d, %v, want what was deleted until the error", n, err)
	}
	if left := queryOne[int64](s, `select count(*) from idem_events`); left != 20000-n {
		t.Errorf("%d events are left, want all but %d", left, n)
	}
	s.Exec(`drop trigger refuse on idem_events`)
	s.wantPruned(s.First, 20000-n)
}

// A provider's redelivery of what came then is a duplicate for as long as of any other event.
func TestEventThatCameWhileTheClockWasBehindIsForgottenNoEarlier(t *testing.T) {
	t.Parallel()
	for _, behind := range []int{60, 46, 20, 3} {
		t.Run(fmt.Sprint(behind, " days"), func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, "0 days")
			s.On(pay)
			s.First.KeepPayloads, s.First.Retention.Payloads = true, 35*24*time.Hour
			s.WantAnswer(paid("e0"), http.StatusOK)
			s.pruneOn(s.First, "0 days")
			s.pruneOn(s.First, "70 days")
			s.WantAnswer(paid("before"), http.StatusOK)

			s.setClock(fmt.Sprintf("%d days", 71-behind))
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantAnswer(newBodyOf("e2"), http.StatusOK)
			if n, err := s.First.Prune(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), "set the clock") {
				t.Errorf("while the clock is behind: Prune = %d, %v, want an error", n, err)
			}
			for _, day := range []string{"71 days 1 minute", "72 days", "73 days", "74 days", "80 days", "90 days", "104 days"} {
				s.pruneOn(s.First, day)
				if status, answer := s.Deliver(paid("e1")); status != http.StatusOK || !strings.Contains(answer, "duplicate") {
					t.Errorf("on day %s the event that is delivered again is answered %d %s", day, status, answer)
				}
				s.WantState("e2", idem.StateUnhandled)
				s.WantPayload("e2", newBodyOf("e2"))
				s.WantPayload("e1", paid("e1"))
			}
			s.WantEffects(3)
			s.WantState("e0", "") // the others go on
			s.pruneOn(s.First, "118 days")
			s.pruneOn(s.First, "120 days")
			s.pruneOn(s.First, "122 days")
			s.WantState("e1", "")
			s.WantState("e2", "")
		})
	}
}

// Prune runs daily, an event comes daily, and each is kept for Retention and three days at most.
func TestDailyPruneForgetsInTime(t *testing.T) {
	t.Parallel()
	s := appWithClock(t, "0 days")
	s.On(pay)
	s.First.Retention.Events = 31 * 24 * time.Hour
	for day := range 50 {
		s.setClock(fmt.Sprintf("%d days 1 hour", day))
		s.WantAnswer(paid(fmt.Sprint("e", day)), http.StatusOK)
		s.pruneOn(s.First, fmt.Sprintf("%d days 2 hours", day))
		s.pruneOn(s.First, fmt.Sprintf("%d days 3 hours", day)) // of another process
		there := queryOne[[]string](s, `select array_agg(substring(event from 'e[0-9]+$')) from idem_events`)
		for old := range day + 1 {
			if is := slices.Contains(there, fmt.Sprint("e", old)); is && old < day-34 || !is && old >= day-31 {
				t.Errorf("on day %d the event of day %d is there: %t", day, old, is)
			}
		}
	}
}

func TestPruneForgetsEachKindAtItsOwnAge(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	kept := func(s ...string) []string { return sorted(s) }
	for name, c := range map[string]struct {
		set                 func(*idem.Inbox)
		events, doneBodies  []string
		forgotten, openKept int // and payloads of what is not done
	}{
		"by default parked events and payloads stay": {
			set:        func(*idem.Inbox) {},
			events:     kept("done-1", "done-10", "unhandled-1", "unhandled-10", "discarded-1", "discarded-10", "parked-1", "parked-10", "parked-50"),
			doneBodies: kept("done-1", "done-10", "discarded-1", "discarded-10"),
			forgotten:  3, openKept: 2 + 3,
		},
		"parked events sooner than the others": {
			set:        func(p *idem.Inbox) { p.Retention.Parked = 5 * day },
			events:     kept("done-1", "done-10", "unhandled-1", "unhandled-10", "discarded-1", "discarded-10", "parked-1"),
			doneBodies: kept("done-1", "done-10", "discarded-1", "discarded-10"),
			forgotten:  5, openKept: 2 + 1,
		},
		"parked events later than the others": {
			set:        func(p *idem.Inbox) { p.Retention.Events, p.Retention.Parked = 5*day, 20*day },
			events:     kept("done-1", "unhandled-1", "discarded-1", "parked-1", "parked-10"),
			doneBodies: kept("done-1", "discarded-1"),
			forgotten:  7, openKept: 1 + 2,
		},
		"payloads of what is done sooner": {
			set:        func(p *idem.Inbox) { p.Retention.Payloads = 5 * day },
			events:     kept("done-1", "done-10", "unhandled-1", "unhandled-10", "discarded-1", "discarded-10", "parked-1", "parked-10", "parked-50"),
			doneBodies: kept("done-1", "discarded-1"),
			forgotten:  3, openKept: 2 + 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.stock(1, 10, 50)
			s.Exec(`insert into idem_events (event, type, key, state, received_at) values ('notes2//done', '', '', 'done', '2020-01-01'), ('notes2//failed', '', '', 'parked', '2020-01-01')`)
			s.Exec(`insert into idem_archive (event, received_at, body) values ('notes2//done', '2020-01-01', '')`)
			s.First.Retention.AllowProcessingTwice = true
			c.set(s.First)
			s.wantSeen(s.First)
			if n, err := engineOf(s.First).DryPrune(t.Context()); n != int64(c.forgotten) || err != nil {
				t.Errorf("DryPrune = %d, %v, want %d", n, err, c.forgotten)
			}
			s.wantPruned(s.First, int64(c.forgotten))

			want := append(c.events, "pending-1", "pending-10", "pending-50")
			const events = `select coalesce(array_agg(substr(event, 8) order by event), '{}') from idem_events where starts_with(event, 'notes/')`
			if diff := cmp.Diff(sorted(want), queryOne[[]string](s, events)); diff != "" {
				t.Error("events (-want +got):\n" + diff)
			}
			const bodies = `select coalesce(array_agg(substr(event, 8) order by event), '{}') from idem_archive where starts_with(event, 'notes/')`
			if diff := cmp.Diff(c.doneBodies, queryOne[[]string](s, bodies)); diff != "" {
				t.Error("payloads of what is done (-want +got):\n" + diff)
			}
			if n := queryOne[int](s, `select count(*) from idem_payloads`); n != c.openKept+3 {
				t.Errorf("%d payloads of what is not done are kept, want %d", n, c.openKept+3)
			}
			if n := queryOne[int](s, `select (select count(*) from idem_events where starts_with(event, 'notes2/')) + (select count(*) from idem_archive where starts_with(event, 'notes2/'))`); n != 3 {
				t.Errorf("%d rows of another source are left of 3", n)
			}
			s.wantPruned(s.First, 0)
		})
	}
}

// Daylight saving time and a correction of the clock take an hour at most.
func TestPruneForgetsNothingByAClockThatWasSetBackByMoreThanAnHour(t *testing.T) {
	t.Parallel()
	for back, refused := range map[string]bool{"50 minutes": false, "70 minutes": true, "20 hours": true} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, "0 days")
			s.pruneOn(s.First, "10 days")
			s.setClock("10 days -" + back)
			_, err := s.First.Prune(t.Context())
			if got := err != nil && strings.Contains(err.Error(), "set the clock"); got != refused {
				t.Errorf("Prune says %v, want an error: %t", err, refused)
			}
		})
	}
}

// The clock was ahead for an hour, and Prune ran.
func TestClockThatIsAheadForgetsNothingAtOnce(t *testing.T) {
	t.Parallel()
	for _, ahead := range []string{"60 days", "10 years"} {
		t.Run(ahead, func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, "0 days")
			s.On(pay)
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantAnswer(newBodyOf("e2"), http.StatusOK)
			s.pruneOn(s.First, "0 days")
			s.pruneOn(s.First, "1 day")
			for _, later := range []string{"1 minute", "1 hour", "22 hours"} {
				if n := s.pruneOn(s.First, ahead+" "+later); n != 0 {
					t.Errorf("%s after the clock is ahead %d events are forgotten", later, n)
				}
			}
			s.setClock("1 day 2 hours")
			if n, err := s.First.Prune(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), "delete from idem_prunes where source = 'notes'") {
				t.Errorf("Prune = %d, %v, want an error that says what to do", n, err)
			}
			s.Exec(`delete from idem_prunes where source = 'notes'`)
			s.pruneOn(s.First, "2 days")
			s.pruneOn(s.First, "3 days")
			s.WantState("e1", idem.StateDone)
			s.WantState("e2", idem.StateUnhandled)
			s.pruneOn(s.First, "48 days")
			if n := s.pruneOn(s.First, "49 days"); n != 2 {
				t.Errorf("%d events are forgotten when they are old, want 2", n)
			}
		})
	}
}
