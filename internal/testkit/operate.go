package testkit

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Listed returns the events that List of First yields.
func (s *Shop) Listed(f idem.Filter) (all []idem.StoredEvent) {
	s.Helper()
	for stored, err := range s.First.List(s.Context(), f) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, stored)
	}
	return all
}

// WantReplayed replays events, and checks how many came to what.
func (s *Shop) WantReplayed(f idem.Filter, want idem.Replayed) {
	s.Helper()
	got, err := s.First.Replay(s.Context(), f)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(Counted(want), Counted(got)); diff != "" {
		s.Error("Replay: done, failed, unhandled, left (-want +got):\n" + diff)
	}
}

// Counted returns the counts of a replay: done, failed, unhandled, left.
func Counted(r idem.Replayed) [4]int { return [4]int{r.Done, r.Failed, r.Unhandled, r.Left} }

// WantDiscarded discards events of Inbox, and checks how many.
func (s *Shop) WantDiscarded(f idem.Filter, reason string, want int64) {
	s.Helper()
	if n, err := s.Inbox.Discard(s.Context(), f, reason); n != want || err != nil {
		s.Errorf("Discard = %d, %v, want %d", n, err, want)
	}
}

// Acted does what is planned, and returns how many events it was done to.
func Acted(ctx context.Context, reason string) func(*operator.Plan, error) (int64, error) {
	return func(p *operator.Plan, err error) (int64, error) {
		if err != nil {
			return 0, err
		}
		r, err := p.Do(ctx, reason)
		return r.Acted, err
	}
}

// Replayed does the same with a replay, and returns its sum.
func Replayed(ctx context.Context, reason string) func(*operator.Plan, error) (idem.Replayed, error) {
	return func(p *operator.Plan, err error) (idem.Replayed, error) {
		if err != nil {
			return idem.Replayed{}, err
		}
		r, err := p.Do(ctx, reason)
		return r.Replayed, err
	}
}

// Trail returns the audit trail, the oldest action first. It reads page by page.
func (s *Shop) Trail() (all []operator.Action) {
	s.Helper()
	for before := int64(0); ; {
		page, err := operator.New(s.First, "").Actions(s.Context(), before, 2)
		if err != nil {
			s.Fatal(err)
		}
		if len(page) == 0 {
			slices.Reverse(all)
			return all
		}
		for _, a := range page {
			if a.Result != "" && (a.EndedAt.Before(a.At) || time.Since(a.At) > time.Hour) {
				s.Errorf("an action began at %s and ended at %s", a.At, a.EndedAt)
			}
		}
		before, all = page[len(page)-1].ID, append(all, page...)
	}
}

// TrailLines returns the audit trail, the oldest action first, each as "actor action reason: result".
func TrailLines(t testing.TB, pool *pgxpool.Pool) []string {
	t.Helper()
	return QueryOne[[]string](t, pool, `select coalesce(array_agg(concat_ws(' ', actor, action, nullif(reason, '')) || ': ' || coalesce(result, '') order by id), '{}') from idem_audit`)
}

// Changed returns what is not the same before and now, by key: "key value", or "key gone".
func Changed(before, now map[string]string) (all []string) {
	keys := maps.Clone(before)
	maps.Copy(keys, now)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch value, ok := now[key]; {
		case !ok:
			all = append(all, key+" gone")
		case value != before[key]:
			all = append(all, key+" "+value)
		}
	}
	return all
}

// AnyTime leaves out what differs from run to run, in a comparison of actions.
var AnyTime = cmpopts.IgnoreFields(operator.Action{}, "ID", "At", "EndedAt")
