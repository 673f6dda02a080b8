//go:build long

package promises_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

// Whoever has seen the line of the first may wait for the next.
func TestEachFurtherEventThatWaitsIsLogged(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received")
	for n, id := range []string{"received", "a", "b"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
		want, says := "parked", "1 events are parked"
		if n > 0 {
			want, says = "held and parked", fmt.Sprintf("%d events of", n)
		}
		s.wantHealth(id, s.newHealth(s.first), want, says)
	}
	h := s.newHealth(s.first)
	h.Report()
	s.wantAnswer(about("c", "paid", "o1"), http.StatusOK)
	for h.Report().Checks[3].Says == "" || !strings.Contains(s.logged(), "says=\"3 events of 1 entities") {
		if !h.Report().Healthy {
			pause()
		}
	}
}

func TestPassParkedThatIsSwitchedOnLaterFreesWhatWaits(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(*till){
		"of a processor": func(s *till) {
			p := newFirst(s.pool, s.handlers())
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
				s.accepts(s.first, at(1, head, "paid", order), idem.Parked)
				s.accepts(s.first, at(2, fmt.Sprintf("b-%03d", n), "paid", order), idem.Parked)
				s.accepts(s.first, at(3, fmt.Sprintf("c-%03d", n), "paid", order), idem.Parked)
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
