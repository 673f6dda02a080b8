package operator_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Between the question and the answer one of the events is done by somebody else, and another one comes.
func TestAPlanIsCarriedOutOnItsEventsAndNamesWhatItLeaves(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	park := func(ids ...string) {
		t.Helper()
		testkit.Exec(t, pool, `insert into idem_events (event, type, key, state) select 'notes//' || id, 'paid', '', 'parked' from unnest($1::text[]) id`, ids)
		testkit.Exec(t, pool, `insert into idem_payloads (event, source, received_at, body) select 'notes//' || id, 'notes', now(), '{}' from unnest($1::text[]) id`, ids)
	}
	const left = "done, in another state by now, or being processed"
	for action, plan := range map[string]func(*operator.Operator, context.Context, idem.Filter) (*operator.Plan, error){
		"discard": (*operator.Operator).PlanDiscard, "requeue": (*operator.Operator).PlanRequeue, "replay": (*operator.Operator).PlanReplay,
	} {
		testkit.Exec(t, pool, `delete from idem_events; delete from idem_payloads where source <> ''`)
		park("e1", "e2", "e3", "e4", "e5", "e6", "e7")
		ana := operator.New(idem.NewInbox(pool, testkit.NewSource("notes")), "ana")
		ana.RequeueWithoutWorkers = true
		p, err := plan(ana, t.Context(), idem.Filter{Types: []string{"paid"}})
		if err != nil || p.Action != action || p.Count != 7 {
			t.Fatalf("the plan to %s is %+v, %v", action, p, err)
		}
		p.Keep(func(rowKey string) bool { return rowKey != "notes//e7" })
		first, err := p.First(t.Context())
		if err != nil || p.Count != 6 || len(first) != 5 {
			t.Errorf("%s: it shows %d of %d events, %v, want the first 5 of 6", action, len(first), p.Count, err)
		}
		testkit.Exec(t, pool, `update idem_events set state = 'done' where event = 'notes//e1'`)
		park("e8")
		r, err := p.Do(t.Context(), "noise")
		if diff := cmp.Diff([]operator.Left{{Events: 1, Why: left}}, r.Left); diff != "" || r.Acted != 5 || err != nil {
			t.Errorf("%s: it acted on %d events, %v, want 5; it left (-want +got):\n%s", action, r.Acted, err, diff)
		}
		if n, err := p.Came(t.Context()); n != 1 || err != nil {
			t.Errorf("%s: %d events came since, %v, want e8; e7 was left out on purpose", action, n, err)
		}
		const parked = `select coalesce(string_agg(event, ' ' order by event), '') from idem_events where state = 'parked' and event in ('notes//e7', 'notes//e8')`
		var untouched string
		if err := pool.QueryRow(t.Context(), parked).Scan(&untouched); err != nil || untouched != "notes//e7 notes//e8" {
			t.Errorf("%s: left as they were are %q, %v, want e7 and e8", action, untouched, err)
		}
	}
}
