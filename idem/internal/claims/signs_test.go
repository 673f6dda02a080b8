package claims

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// look is one look at another runner, at a second of this process's clock.
type look struct {
	at     int
	signed int // by the database's clock
	db     int // which is that late
	lost   bool
	absent bool
}

// When a runner is dead, and when it is gone, as another one sees it.
func TestRunnerIsDeadOnceItHasGivenNoSignForEightSeconds(t *testing.T) {
	t.Parallel()
	const hour = 3600
	for reason, c := range map[string]struct {
		looks      []look
		dead, gone []int // at which looks
	}{
		"it gives signs": {looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, signed: 1, db: 2}, {at: 10, signed: 9, db: 10}, {at: 18, signed: 17, db: 18}}},
		"it gives none any more": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, signed: 2, db: 2}, {at: 8, signed: 2, db: 8}, {at: 10, signed: 2, db: 10}},
			dead:  []int{3},
		},
		"its last sign counts, not when that was seen": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, signed: 1, db: 2}, {at: 9, signed: 1, db: 9}},
			dead:  []int{2},
		},
		"it was dead before this one began":     {looks: []look{{at: 0, signed: 0, db: 8}}, dead: []int{0}},
		"the clock is put an hour forward":      {looks: []look{{at: 0, signed: 0, db: 1}, {at: 2, signed: 1, db: hour}, {at: 4, signed: hour, db: hour + 2}}},
		"it is put back an hour":                {looks: []look{{at: 0, signed: hour, db: hour}, {at: 2, signed: hour + 1, db: 2}, {at: 4, signed: 3, db: 4}}},
		"and the other has died at that moment": {looks: []look{{at: 0, signed: hour, db: 0}, {at: 6, signed: hour, db: 6}, {at: 8, signed: hour, db: 8}}, dead: []int{2}},
		"Postgres was unavailable, for both": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 30, lost: true}, {at: 31, signed: 0, db: 31}, {at: 33, signed: 32, db: 33}},
		},
		"and the other has died in that time": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 30, lost: true}, {at: 31, signed: 0, db: 31}, {at: 38, signed: 0, db: 38}},
			dead:  []int{3},
		},
		"it has ended": {looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, absent: true}, {at: 4, absent: true}}, gone: []int{1}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			s, start := NewSigns("notes"), time.Now()
			second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
			var dead, gone []int
			for n, l := range c.looks {
				if l.lost {
					s.Lost(second(l.at))
					continue
				}
				var others []store.Worker
				if !l.absent {
					others = append(others, store.Worker{ID: 1, SeenAt: second(l.signed), Silent: second(l.db).Sub(second(l.signed))})
				}
				isDead, isGone := s.Look(second(l.at), others)
				if len(isDead) > 0 {
					dead = append(dead, n)
				}
				if isGone {
					gone = append(gone, n)
				}
			}
			if diff := cmp.Diff(c.dead, dead) + cmp.Diff(c.gone, gone); diff != "" {
				t.Errorf("it is dead, and gone, at these looks (-want +got):\n%s", diff)
			}
		})
	}
}
