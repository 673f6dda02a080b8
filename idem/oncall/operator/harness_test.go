package operator_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// night is a shop whose handler was broken until now.
type night struct {
	*testkit.Shop
	fixed atomic.Bool
}

// newNight returns one with an event in every state. Those named ok have been done before, and those named bad fail
// still.
//
//	ok0    is done, and its body is kept
//	late1  is parked, and late2 waits for it
//	bad3   is parked
//	new4   has no handler
//	late5  has failed, and is tried again in an hour
//	busy6  is being processed
//	gone7  is parked, and is done by somebody else while a person looks at a plan; then come8 comes, and is parked
func newNight(t *testing.T) *night {
	t.Helper()
	s := &night{Shop: testkit.NewInboxShop(t)}
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		if !s.fixed.Load() && !strings.HasPrefix(n.ID, "ok") || strings.HasPrefix(n.ID, "bad") {
			return idem.NoRetry(errors.New("no such order"))
		}
		return testkit.Pay(ctx, tx, n)
	})
	s.Inbox.KeepPayloads = true
	s.Store(testkit.Letter("ok0", "o0", 1))
	s.Drain(1)
	s.Inbox.KeepPayloads = false
	s.Store(testkit.Letter("late1", "o1", 1), testkit.Letter("late2", "o1", 2), testkit.Letter("bad3", "o3", 1), testkit.At(1, "new4", "new", "o4"),
		testkit.Letter("late5", "o5", 1), testkit.Letter("gone7", "o7", 1))
	s.Drain()
	s.Store(testkit.Letter("busy6", "o6", 1))
	s.ClaimElsewhere("busy6")
	s.Exec(`update idem_events set state = 'pending' where event = 'notes//late5'; update idem_payloads set due_at = now() + interval '1 hour' where event = 'notes//late5'`)
	s.fixed.Store(true)
	return s
}

// passes is what happens between the question and the answer.
const passes = `
update idem_events set state = 'done' where event = 'notes//gone7';
delete from idem_payloads where event = 'notes//gone7';
insert into idem_events (event, type, key, state, attempts) values ('notes//come8', 'paid', 'o8', 'parked', 1);
insert into idem_payloads (event, source, lane, received_at, body) values ('notes//come8', 'notes', 'notes//o8', now(), '{"id":"come8","type":"paid","order":"o8"}')`

// changes returns a function that says which events have changed since, and how. An event is its state, its failed
// attempts, its effects, whether a person takes care of it, its error, and whether its body is stored.
func (s *night) changes() func() []string {
	s.Helper()
	stored := func() map[string]string {
		return testkit.QueryOne[map[string]string](s, s.Pool, `select coalesce(jsonb_object_agg(regexp_replace(event, '^notes//((sha256):.*)?', '\2') || ':', concat_ws(', ', state,
			(select nullif(attempts, 0) || ' failed'), (select nullif(count(*), 0) || ' effects' from effects f where 'notes//' || f.event = e.event),
			(select 'acknowledged' from idem_payloads p where p.event = e.event and acknowledged_at is not null), nullif(last_error, ''),
			(select 'body' from (select event from idem_payloads union all select event from idem_archive) p where p.event = e.event))), '{}') from idem_events e`)
	}
	before := stored()
	return func() []string {
		s.Helper()
		return testkit.Changed(before, stored())
	}
}

// lastAction returns the latest entry of the trail, and the outcome of each of its events.
func (s *night) lastAction() (entry, outcomes string) {
	s.Helper()
	o := operator.New(s.Inbox, "")
	trail, err := o.Actions(s.Context(), 0, 1)
	if err != nil {
		s.Fatal(err)
	}
	if len(trail) == 0 {
		return "", ""
	}
	a := trail[0]
	if a.EndedAt.IsZero() || a.Source != "notes" {
		s.Errorf("the trail has %+v", a)
	}
	all, err := o.Outcomes(s.Context(), a.ID, 100)
	if err != nil {
		s.Fatal(err)
	}
	var of []string
	for _, e := range all {
		of = append(of, strings.TrimSpace(strings.TrimPrefix(e.Event, "notes//")+" "+e.Result))
	}
	result := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`).ReplaceAllString(a.Result, "TIME")
	return fmt.Sprintf("%s %s (%s) %q, %d events: %s", a.Actor, a.Action, a.Filter, a.Reason, a.Events, result), strings.Join(of, ", ")
}
