package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// A person unticks some of the events that a plan has found.
func TestAPlanLeavesWhatWasTakenOutOfIt(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	park := func(ids ...string) {
		t.Helper()
		testkit.Exec(t, pool, `insert into idem_events (event, type, key, state) select 'notes//' || id, 'paid', '', 'parked' from unnest($1::text[]) id`, ids)
		testkit.Exec(t, pool, `insert into idem_payloads (event, source, received_at, body) select 'notes//' || id, 'notes', now(), '{}' from unnest($1::text[]) id`, ids)
	}
	park("e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8")
	p, err := operator.New(idem.NewInbox(pool, testkit.NewSource("notes")), "ana").PlanDiscard(t.Context(), idem.Filter{Types: []string{"paid"}})
	if err != nil || p.Action != "discard" || p.Count != 8 {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
	for _, out := range []string{"notes//e7", "notes//e8"} {
		p.Keep(func(rowKey string) bool { return rowKey != out })
	}
	first, err := p.First(t.Context())
	if diff := cmp.Diff([]string{"e1", "e2", "e3", "e4", "e5"}, testkit.IDs(first)); diff != "" || p.Count != 6 || err != nil {
		t.Errorf("it is about %d events, %v, want 6; the first (-want +got):\n%s", p.Count, err, diff)
	}
	park("e9")
	if r, err := p.Do(t.Context(), "noise"); r.Acted != 6 || r.Left != nil || err != nil {
		t.Errorf("it acted on %d events, and left %v, %v, want 6", r.Acted, r.Left, err)
	}
	if n, err := p.Came(t.Context()); n != 1 || err != nil {
		t.Errorf("%d events came since, %v, want e9; the others were left out on purpose", n, err)
	}
	const parked = `select array_agg(event order by event) from idem_events where state = 'parked'`
	if diff := cmp.Diff([]string{"notes//e7", "notes//e8", "notes//e9"}, testkit.QueryOne[[]string](t, pool, parked)); diff != "" {
		t.Error("what is as it was (-want +got):\n" + diff)
	}
}
