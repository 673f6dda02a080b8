package claims

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// An event is due when its transaction began, and seen when that is committed: others that
// became due later may have been seen before.
func TestASearchGoesOnALittleBeforeTheLastEventThatWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Position
		if after := p.After(); !after.IsZero() {
			t.Errorf("the first search begins at %s, want the start", after)
		}
		last := time.Now()
		p.Seen(store.Claims{Last: last})
		p.Seen(store.Claims{Last: last.Add(-time.Second)}) // found by its lag
		p.Seen(store.Claims{})                             // nothing was due
		for late, found := range map[time.Duration]bool{250 * time.Millisecond: true, time.Second: false} {
			if after := p.After(); after.Before(last.Add(-late)) != found {
				t.Errorf("an event that was due %s before the last one: the next search begins at %s, after %s", late, after, last)
			}
		}
		time.Sleep(5 * time.Second) // what came later than that
		if after := p.After(); !after.IsZero() {
			t.Errorf("after 5 seconds a search begins at %s, want the start", after)
		}
		if after := p.After(); !after.IsZero() {
			t.Errorf("with nothing seen, the next one begins at %s, want the start", after)
		}
	})
}
