package idem_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

// Its handler was taken away: it holds nothing, as an event without a handler
// never does.
func TestEventThatHasNoHandlerInItsTurnLetsTheRestGoOn(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
	s.wantAnswer(about("b", "refunded", "o1"), http.StatusOK)
	s.wantAnswer(about("c", "paid", "o1"), http.StatusOK)
	s.fails()
	source := &notes{}
	idem.Handle(&source.Routes, "paid", s.book)
	p := idem.NewProcessor(s.pool, source)
	p.Logger = s.logger()
	if got, err := p.Replay(t.Context(), idem.Filter{IDs: []string{"a"}}); counted(got) != [3]int{2, 0, 1} || err != nil {
		t.Errorf("Replay = %+v, %v", got, err)
	}
	s.wantState("b", idem.StateUnhandled)
	s.wantLedger("a paid", "c paid")
	s.replays(idem.Filter{}, idem.Replayed{Done: 1})
}

// Somebody gives the payment up, in a process without handlers or in another
// one: what waited for it goes on where a processor runs.
func TestDiscardOfTheFirstGoesOnWithTheRest(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	for _, c := range []struct {
		id, check, want string
	}{
		{"b", "held and parked", "1 of o1, paid, for a"}, // not the first
		{"a", "held", "1 of o1, paid, for c"},            // and now c waits for nothing but a processor that runs
		{"none", "held", "1 of o1, paid, for c"},         // it says so until then
	} {
		if _, err := s.processor.Discard(t.Context(), idem.Filter{IDs: []string{c.id}}, "paid by hand"); err != nil {
			t.Fatal(err)
		}
		s.wantHealth(c.id+" is discarded", s.newHealth(s.processor), c.check, c.want)
		s.wantLedger()
	}
	s.run(idem.NewProcessor(s.pool, s.handlers())) // another process
	s.untilLedger(1)
	s.wantLedger("c paid")
}

// An event in the middle is given up: what is behind it still waits for the first.
func TestDiscardInTheMiddleFreesNothing(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	if n, err := s.processor.Discard(t.Context(), idem.Filter{IDs: []string{"b"}}, "never mind"); n != 1 || err != nil {
		t.Errorf("Discard = %d, %v", n, err)
	}
	if err := s.processor.GoOn(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantLedger()
	s.wantState("c", idem.StateParked)
	s.fails()
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK) // delivered again: the delivery goes on with c
	s.untilLedger(2)
	s.wantLedger("a paid", "c paid")
}

// ParkedRetention gives parked events up. One that waits was never tried.
func TestPruneOfTheFirstFreesTheRest(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	s.exec(`update idem_events set received_at = '2020-01-01'`)
	s.processor.ParkedRetention = 50 * 24 * time.Hour
	s.wantSeen(s.processor)
	if n, err := s.processor.DryPrune(t.Context()); n != 1 || err != nil {
		t.Errorf("DryPrune = %d, %v, want 1", n, err)
	}
	if n, err := s.processor.Prune(t.Context()); n != 1 || err != nil {
		t.Errorf("Prune = %d, %v, want 1", n, err)
	}
	s.wantState("a", "")
	s.run(s.processor)
	s.untilLedger(2)
	s.wantLedger("b paid", "c paid")
}

func TestPassParkedLetsTheRestGoOnInline(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.processor.PassParked = true
	s.fails("a")
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
	s.wantAnswer(about("b", "paid", "o1"), http.StatusOK)
	s.wantLedger("b paid")
	s.fails()
	s.replays(idem.Filter{}, idem.Replayed{Done: 1})
	s.wantLedger("b paid", "a paid")
}

func TestPassParkedThatIsSwitchedOnLaterFreesWhatWaits(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(*till){
		"of a processor": func(s *till) {
			p := idem.NewProcessor(s.pool, s.handlers())
			p.Logger, p.PassParked = s.logger(), true
			s.run(p)
		},
		"of an inbox": func(s *till) {
			i := idem.NewInbox(s.pool, s.handlers())
			i.Logger, i.PassParked, i.MaxAttempts = s.logger(), true, 1
			if err := i.Drain(s.Context()); err != nil {
				s.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTill(t)
			const orders = 150 // more than are freed in one statement
			var heads, want []string
			for n := range orders {
				heads = append(heads, fmt.Sprintf("head-%03d", n))
			}
			s.fails(heads...)
			for n, head := range heads {
				order := fmt.Sprint("o", n)
				s.accepts(s.processor, at(1, head, "paid", order), idem.Parked)
				s.accepts(s.processor, at(2, fmt.Sprintf("b-%03d", n), "paid", order), idem.Parked)
				s.accepts(s.processor, at(3, fmt.Sprintf("c-%03d", n), "paid", order), idem.Parked)
				want = append(want, fmt.Sprintf("b-%03d paid c-%03d paid", n, n))
			}
			s.fails(append(heads, "b-007")...) // which is passed in its turn
			want[7] = "c-007 paid"
			goOn(s)
			s.untilLedger(2*orders - 1)
			got := queryOne[[]string](s.app, `select array_agg(entries order by n) from (
				select substr(entry, 3, 3) as n, string_agg(entry, ' ' order by place) as entries from ledger group by 1) each_order`)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("the ledger by orders (-want +got):\n" + diff)
			}
			s.wantState("b-007", idem.StateParked)
		})
	}
}

// The application was inline, and is an inbox now.
func TestWorkersGoOnWithWhatWasHeldInline(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.openInbox()
	s.fails("a")
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
	s.wantAnswer(about("b", "refunded", "o1"), http.StatusOK)
	s.store(identify([]byte(about("c", "paid", "o1"))))
	s.fails()
	s.drain(0)
	if n, err := s.inbox.Requeue(t.Context(), idem.Filter{IDs: []string{"a"}}); n != 1 || err != nil {
		t.Errorf("Requeue = %d, %v", n, err)
	}
	s.drain(3)
	s.wantLedger("a paid", "b refunded", "c paid")
}
