package relay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// newApp returns a shop with receivers of what a relay published. Its URL is to be that of the relay.
func newApp(t *testing.T) *testkit.Shop {
	t.Helper()
	s := testkit.NewShop(t)
	s.Inbox = s.NewInbox(s.Pool)
	return s
}

// wantStates counts all stored events by state.
func wantStates(s *testkit.Shop, want map[idem.State]int) {
	s.Helper()
	got := testkit.QueryOne[map[idem.State]int](s, s.Pool, `select coalesce(jsonb_object_agg(state, n), '{}') from (select state, count(*) as n from idem_events group by state) c`)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error("events by state (-want +got):\n" + diff)
	}
}
