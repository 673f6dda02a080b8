//go:build long

package asaas_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
)

// A genuine body is read, or kept unread, whatever is in it. These are about
// as large as an inbox takes by default: hundreds of times what Asaas sends.
//
// It does not run in parallel: others would use memory meanwhile.
func TestHostileBodiesAreReadInBoundedMemory(t *testing.T) {
	const head = `{"id":"evt_1&1","event":"PAYMENT_RECEIVED","payment":{"id":"pay_1","customer":"cus_1","value":1,"status":"RECEIVED"`
	const much = 1_000_000 // bytes
	fill := func(s string) string { return strings.Repeat(s, much/len(s)) }
	var keys strings.Builder
	for i := 0; keys.Len() < much; i++ {
		fmt.Fprintf(&keys, `,"%x":0`, i)
	}
	for _, c := range []struct {
		why, body string
		state     idem.State
		atMost    uint64 // MB, what is free again included
	}{
		{"100,000 keys", head + `}` + keys.String() + `}`, idem.StateDone, 80},
		{"one key again and again", head + fill(`,"id":"pay_1"`) + `}}`, idem.StateDone, 40},
		{"100,000 objects", head + `,"split":[` + strings.Repeat(`{},`, 100_000) + `{}]}}`, idem.StateDone, 500},
		{"9,000 levels", head + `},"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, idem.StateDone, 40},
		{"11,000 levels", head + `},"x":` + strings.Repeat("[", 11000) + strings.Repeat("]", 11000) + `}`, idem.StateParked, 40},
		{"levels without end", `{"event":` + fill("["), idem.StateParked, 40},
		{"an amount of a million digits", strings.Replace(head, `"value":1`, `"value":`+fill("9"), 1) + `}}`, idem.StateParked, 40},
		{"a long id", strings.Replace(head, `evt_1`, fill("9"), 1) + `}}`, idem.StateDone, 40},
		{"a long name", strings.Replace(head, `PAYMENT_RECEIVED`, fill("A"), 1) + `}}`, idem.StateUnhandled, 40},
		{"escapes", head + `,"description":"` + fill(`\u00e9`) + `"}}`, idem.StateDone, 40},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := newTill(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := statuses(t, s.addr, posted(c.body, proof), c.body)
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; !slices.Equal(got, []int{200}) || took > c.atMost {
				t.Errorf("answered %v with %d MB allocated, want 200 with at most %d", got, took, c.atMost)
			}
			var state idem.State
			if err := s.pool.QueryRow(t.Context(), `select state from idem_events`).Scan(&state); err != nil || state != c.state {
				t.Errorf("it is stored as %s, %v, want %s", state, err, c.state)
			}
			payments := 0
			if c.state == idem.StateDone {
				payments = 1
			}
			s.wantStored(t, 1, payments)
		})
	}
}
