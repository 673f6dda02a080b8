//go:build long

package promises_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// A long transaction would keep locks, and all that it deleted from vacuum.
func TestPruneCommitsInSmallBatches(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'done', '2020-01-01' from generate_series(1, 20000) n`)
	s.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
		create trigger refuse before delete on idem_events for each row when (old.event = 'notes//19999') execute function refuse()`)
	n, err := s.prunedTwice(s.processor)
	if err == nil || !strings.HasPrefix(err.Error(), "idem: pruning events: ") || n < 5000 || n > 19998 {
		t.Errorf("Prune = %d, %v, want what was deleted until the error", n, err)
	}
	if left := queryOne[int64](s, `select count(*) from idem_events`); left != 20000-n {
		t.Errorf("%d events are left, want all but %d", left, n)
	}
	s.exec(`drop trigger refuse on idem_events`)
	s.wantPruned(s.processor, 20000-n)
}

// A provider's redelivery of what came then is a duplicate for as long as of any other event.
func TestEventThatCameWhileTheClockWasBehindIsForgottenNoEarlier(t *testing.T) {
	t.Parallel()
	for _, behind := range []int{60, 46, 20, 3} {
		t.Run(fmt.Sprint(behind, " days"), func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, "0 days")
			s.on(pay)
			s.processor.KeepPayloads, s.processor.Retention.Payloads = true, 35*24*time.Hour
			s.wantAnswer(paid("e0"), http.StatusOK)
			s.pruneOn(s.processor, "0 days")
			s.pruneOn(s.processor, "70 days")
			s.wantAnswer(paid("before"), http.StatusOK)

			s.setClock(fmt.Sprintf("%d days", 71-behind))
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantAnswer(newBodyOf("e2"), http.StatusOK)
			if n, err := s.processor.Prune(t.Context()); n != 0 || err == nil || !strings.Contains(err.Error(), "set the clock") {
				t.Errorf("while the clock is behind: Prune = %d, %v, want an error", n, err)
			}
			for _, day := range []string{"71 days 1 minute", "72 days", "73 days", "74 days", "80 days", "90 days", "104 days"} {
				s.pruneOn(s.processor, day)
				if status, answer := s.deliver(paid("e1")); status != http.StatusOK || !strings.Contains(answer, "duplicate") {
					t.Errorf("on day %s the event that is delivered again is answered %d %s", day, status, answer)
				}
				s.wantState("e2", idem.StateUnhandled)
				s.wantPayload("e2", newBodyOf("e2"))
				s.wantPayload("e1", paid("e1"))
			}
			s.wantEffects(3)
			s.wantState("e0", "") // the others go on
			s.pruneOn(s.processor, "118 days")
			s.pruneOn(s.processor, "120 days")
			s.pruneOn(s.processor, "122 days")
			s.wantState("e1", "")
			s.wantState("e2", "")
		})
	}
}

// Prune runs daily, an event comes daily, and each is kept for Retention and three days at most.
func TestDailyPruneForgetsInTime(t *testing.T) {
	t.Parallel()
	s := appWithClock(t, "0 days")
	s.on(pay)
	s.processor.Retention.Events = 31 * 24 * time.Hour
	for day := range 50 {
		s.setClock(fmt.Sprintf("%d days 1 hour", day))
		s.wantAnswer(paid(fmt.Sprint("e", day)), http.StatusOK)
		s.pruneOn(s.processor, fmt.Sprintf("%d days 2 hours", day))
		s.pruneOn(s.processor, fmt.Sprintf("%d days 3 hours", day)) // of another process
		for old := range day + 1 {
			if old > 2 && old < day-36 { // looked at before
				continue
			}
			_, there, err := operator.New(s.processor, "").Lookup(t.Context(), "", fmt.Sprint("e", old))
			if err != nil || there && old < day-34 || !there && old >= day-31 {
				t.Errorf("on day %d the event of day %d is there: %t, %v", day, old, there, err)
			}
		}
	}
}
