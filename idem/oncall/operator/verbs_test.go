package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// planner plans an action.
type planner func(*operator.Operator, context.Context) (*operator.Plan, error)

// on is a planner that chooses events.
func on(plan func(*operator.Operator, context.Context, idem.Filter) (*operator.Plan, error), f idem.Filter) planner {
	return func(o *operator.Operator, ctx context.Context) (*operator.Plan, error) { return plan(o, ctx, f) }
}

var (
	replay        = (*operator.Operator).PlanReplay
	dryReplay     = (*operator.Operator).PlanDryReplay
	requeue       = (*operator.Operator).PlanRequeue
	discard       = (*operator.Operator).PlanDiscard
	acknowledge   = (*operator.Operator).PlanAcknowledge
	unacknowledge = (*operator.Operator).PlanUnacknowledge
	erase         = (*operator.Operator).PlanErase
	prune         = (*operator.Operator).PlanPrune
)

const relaySecret = "the-secret-of-the-relay-in-front-of-it"

func readmit(o *operator.Operator, ctx context.Context) (*operator.Plan, error) {
	return o.PlanReadmit(ctx, relaySecret)
}

func rescope(o *operator.Operator, ctx context.Context) (*operator.Plan, error) {
	return o.PlanRescope(ctx, "", operator.Account{Source: "notes", Scope: "shop"})
}

func pause(o *operator.Operator, ctx context.Context) (*operator.Plan, error) {
	return o.PlanPause(ctx, operator.Pause{Type: "paid"}, time.Hour)
}

func resume(o *operator.Operator, ctx context.Context) (*operator.Plan, error) {
	return o.PlanResume(ctx, operator.Pause{Type: "paid"})
}

func rerun(o *operator.Operator, ctx context.Context) (*operator.Plan, error) {
	return o.PlanRerun(ctx, "", "ok0")
}

// result is the end of an action, as people read it.
func result(p *operator.Plan, r operator.Result, came int64) string {
	says := []string{fmt.Sprintf("%d of %d", r.Acted, p.Count)}
	if r.Short {
		says[0] += ", short"
	}
	for _, left := range r.Left {
		says = append(says, fmt.Sprintf("%d left: %s", left.Events, left.Why))
	}
	if came > 0 {
		says = append(says, fmt.Sprintf("%d came", came))
	}
	return strings.Join(says, "; ")
}

const (
	left      = "left: done, in another state by now, or being processed"
	leftAlone = "left alone: done, in another state by now, or being processed"
	untried   = "left: waiting for their turn and never tried, being processed, or done by now"
)

// Each verb once: what it does to an event of each state, what its plan and its result say, and what the trail keeps.
// Between the plan and Do, gone7 is done by somebody else, and come8 comes: no verb that names its events touches it.
func TestEachVerbIsDoneToTheEventsOfItsPlanAndTheTrailSaysWhat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason    string
		plan      planner
		set       func(*night, *operator.Operator)
		before    func(*night)
		meanwhile func(*night)

		result   string   // of how many of the plan, what is left for a person, and what came
		events   []string // that are changed
		trail    string
		outcomes string // of the events in the trail: failed ones first, then those with none
	}{
		"replay": {
			reason: "of all that a person has to act on: an event that fails stays parked, and one without a handler stays", plan: on(replay, idem.Filter{}),
			result: "3 of 4, short; 1 " + left + "; 1 came", events: []string{"bad3: parked, 2 failed, no such order, body", "late1: done, 1 failed, 1 effects"},
			trail:    `replay (states unhandled parked; 4 by row key) "noise", 3 events: 1 done, 1 failed, 1 without a handler; 1 ` + leftAlone + `; first failure: paid bad3`,
			outcomes: "bad3 failed, new4 unhandled, late1 done",
		},
		"replay of one": {
			reason: "of what is named, and nothing is left to do", plan: on(replay, idem.Filter{IDs: []string{"late1", "late2", "nope"}}),
			result: "1 of 1", events: []string{"late1: done, 1 failed, 1 effects"},
			trail: `replay (states unhandled parked; ids late1 late2 nope; 1 by row key) "noise", 1 events: 1 done, 0 failed, 0 without a handler`, outcomes: "late1 done",
		},
		"replay of what another does meanwhile": {
			reason: "it is left alone, and no event of it is lost in the count", plan: on(replay, idem.Filter{Types: []string{"paid"}}), set: func(s *night, o *operator.Operator) {
				o.Progress = func(idem.Replayed, int) {
					s.Exec(`update idem_events set state = 'done' where event = 'notes//bad3'; delete from idem_payloads where event = 'notes//bad3'`)
				}
			},
			result: "1 of 3; 2 " + left + "; 1 came", events: []string{"bad3: done, 1 failed, no such order", "late1: done, 1 failed, 1 effects"},
			trail: `replay (states unhandled parked; types paid; 3 by row key) "noise", 2 events: 1 done, 0 failed, 0 without a handler; 2 ` + leftAlone, outcomes: "bad3 left, late1 done",
		},
		"dry replay": {
			reason: "the trail says the same of it, and no event is changed", plan: on(dryReplay, idem.Filter{}),
			result:   "3 of 4, short; 1 " + left + "; 1 came",
			trail:    `dry replay (states unhandled parked; 4 by row key) "noise", 3 events: 1 done, 1 failed, 1 without a handler; 1 ` + leftAlone + `; first failure: paid bad3`,
			outcomes: "bad3 failed, new4 unhandled, late1 done",
		},
		"requeue": {
			reason: "workers begin with no failed attempt", plan: on(requeue, idem.Filter{}), before: func(s *night) { s.WorkersElsewhere("notes") },
			result: "3 of 4; 1 " + left + "; 1 came", events: []string{"bad3: pending, no such order, body", "late1: pending, no such order, body", "new4: pending, body"},
			trail: `requeue (states unhandled parked; 4 by row key) "noise", 3 events: 3 requeued; 1 ` + leftAlone, outcomes: "bad3 requeued, late1 requeued, new4 requeued",
		},
		"requeue without workers": {
			reason: "where they run from time to time", plan: on(requeue, idem.Filter{Keys: []string{"o3"}}), set: func(_ *night, o *operator.Operator) { o.RequeueWithoutWorkers = true },
			result: "1 of 1", events: []string{"bad3: pending, no such order, body"},
			trail: `requeue (states unhandled parked; entities o3; 1 by row key) "noise", 1 events: 1 requeued`, outcomes: "bad3 requeued",
		},
		"discard": {
			reason: "the reason stays with the events, and their bodies do not", plan: on(discard, idem.Filter{}),
			result: "3 of 4; 1 " + left + "; 1 came", events: []string{"bad3: discarded, 1 failed, discarded: noise", "late1: discarded, 1 failed, discarded: noise", "new4: discarded, discarded: noise"},
			trail: `discard (states unhandled parked; 4 by row key) "noise", 3 events: 3 discarded; 1 ` + leftAlone, outcomes: "bad3 discarded, late1 discarded, new4 discarded",
		},
		"discard of what is pending": {
			reason: "but for what is being processed", plan: on(discard, idem.Filter{IDs: []string{"late2", "late5", "busy6"}, States: []idem.State{idem.StatePending}, ReceivedUntil: time.Date(2199, 1, 2, 3, 4, 5, 0, time.UTC)}), before: working,
			result: "2 of 3; 1 " + left, events: []string{"late2: discarded, discarded: noise", "late5: discarded, 1 failed, discarded: noise"},
			trail: `discard (states pending; ids late2 late5 busy6; 3 by row key; received until 2199-01-02T03:04:05Z) "noise", 2 events: 2 discarded; 1 ` + leftAlone, outcomes: "late2 discarded, late5 discarded",
		},
		"acknowledge": {
			reason: "what has failed, parked or not", plan: on(acknowledge, idem.Filter{}),
			result: "3 of 4; 1 " + untried + "; 1 came", events: []string{"bad3: parked, 1 failed, acknowledged, no such order, body", "late1: parked, 1 failed, acknowledged, no such order, body", "late5: pending, 1 failed, acknowledged, no such order, body"},
			trail: `acknowledge (states pending parked; 4 by row key; failed) "noise", 3 events: 3 acknowledged`, outcomes: "bad3 acknowledged, late1 acknowledged, late5 acknowledged",
		},
		"acknowledge by id": {
			reason: "what waits or is being processed is left alone, and what has no handler is none", plan: on(acknowledge, idem.Filter{IDs: []string{"late1", "late2", "busy6", "new4"}}),
			result: "1 of 3; 2 " + untried, events: []string{"late1: parked, 1 failed, acknowledged, no such order, body"},
			trail: `acknowledge (states pending parked; ids late1 late2 busy6 new4; 3 by row key) "noise", 1 events: 1 acknowledged`, outcomes: "late1 acknowledged",
		},
		"unacknowledge": {
			reason: "what somebody takes care of, and no other", plan: on(unacknowledge, idem.Filter{}), before: func(s *night) { s.Exec(`update idem_payloads set acknowledged_at = now() where event ~ 'late1|gone7'`) },
			result: "1 of 2; 1 " + left, events: []string{"late1: parked, 1 failed, no such order, body"},
			trail: `unacknowledge (states pending parked; 2 by row key) "noise", 1 events: 1 unacknowledged`, outcomes: "late1 unacknowledged",
		},
		"erase": {
			reason: "of what is named in three ways, each once; what is not done is left alone", plan: on(erase, idem.Filter{IDs: []string{"ok0", "late1"}, Keys: []string{"o0", "o7"}, Events: []string{"notes//ok0"}}),
			result: "2 of 3, short; 1 left: not done; process them, or have them given up and erased", events: []string{"gone7: done, 1 failed", "ok0: done, 1 effects"},
			trail: `erase (3 by row key) "noise", 2 events: 2 erased; 1 left alone: not done`, outcomes: "gone7 erased, ok0 erased",
		},
		"erase of what is not done": {
			reason: "but for what is being processed", plan: on(erase, idem.Filter{IDs: []string{"ok0", "late1", "late2", "new4", "busy6"}}), before: working, set: func(_ *night, o *operator.Operator) { o.EraseNotDone = true },
			result: "4 of 5, short; 1 left: being processed or changed; erase them again in a moment",
			events: []string{"late1: discarded, 1 failed, discarded: erased", "late2: discarded, discarded: erased", "new4: discarded, discarded: erased", "ok0: done, 1 effects"},
			trail:  `erase (5 by row key) "noise", 4 events: 4 erased; 1 left alone: being processed or changed`, outcomes: "late1 erased, late2 erased, new4 erased, ok0 erased",
		},
		"readmit": {
			reason: "what the secret verifies is stored for the workers, once", plan: readmit, before: func(s *night) { setAside(s); s.WorkersElsewhere("notes") }, meanwhile: func(s *night) {
				s.Exec(`update idem_events set state = 'discarded' where event = 'notes//given-up'; delete from idem_payloads where event = 'notes//given-up'`)
				aside(s, "came-since", broker.Message{Body: []byte("came since")})
			},
			result: "1 of 3, short; 1 " + left + "; 1 left: set aside still: the message is not a relay's: see who else publishes to its topic or queue; 1 came",
			events: []string{"relayed9: pending, body", "sealed: discarded, discarded: verified again, and accepted"},
			trail:  `readmit (messages that were set aside) "noise", 0 events: 1 accepted, 1 left`,
		},
		"prune": {
			reason: "what an earlier run has seen to be old, but for what is parked", plan: prune, before: aged,
			result: "1 of 1", events: []string{"ok0: gone"}, trail: `prune (older than 45 d; parked ones: never; the audit trail: 730 d) "noise", 0 events: 1 forgotten`,
		},
		"rescope": {
			reason: "all of an account, also what came since", plan: rescope, before: func(s *night) { s.Exec(`delete from idem_events where event !~ '(ok0|bad3|gone7)$'`) },
			result: "4 of 3",
			events: []string{
				"bad3: gone", "come8: gone", "gone7: gone",
				"notes/shop/bad3: parked, 1 failed, no such order, body", "notes/shop/come8: parked, 1 failed, body", "notes/shop/gone7: done, 1 failed, no such order", "notes/shop/ok0: done, body",
				"ok0: gone",
			},
			trail: `rescope (notes without a scope to notes "shop") "noise", 0 events: 4 moved`,
		},
		"pause":  {reason: "it counts what is pending, and changes no event", plan: pause, result: "3 of 3", trail: `pause (events of type paid) "noise", 0 events: until TIME`},
		"resume": {reason: "the same events", plan: resume, before: paused, result: "3 of 3", trail: `resume (events of type paid) "noise", 0 events: `},
		"rerun":  {reason: "a done event has one more effect, and keeps its body", plan: rerun, result: "1 of 1", events: []string{"ok0: done, 2 effects, body"}, trail: `rerun (ok0) "noise", 1 events: 1 done`, outcomes: "ok0 done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newNight(t)
			if c.before != nil {
				c.before(s)
			}
			ana := operator.New(s.Inbox, "ana")
			if c.set != nil {
				c.set(s, ana)
			}
			p, err := c.plan(ana, t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.Exec(passes)
			if c.meanwhile != nil {
				c.meanwhile(s)
			}
			changes := s.changes()
			r, err := p.Do(t.Context(), "noise")
			if err != nil {
				t.Fatal(err)
			}
			came, err := p.Came(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			trail, outcomes := s.lastAction()
			want := append(c.events, c.result, "ana "+c.trail, c.outcomes)
			if diff := cmp.Diff(want, append(changes(), result(p, r, came), trail, outcomes)); diff != "" {
				t.Errorf("%s: the events, the result, the trail and the outcomes (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// working has a handler hold busy6.
func working(s *night) {
	s.Session(`begin; select from idem_events where event = 'notes//busy6' for update`)
}

// setAside stores three messages that a consumer with a wrong secret could not verify: one is genuine, one is none, and
// one is given up later.
func setAside(s *night) {
	var sealed broker.Message
	r := relay.New(s.Notes, publisher(func(m broker.Message) { sealed = m }), relaySecret)
	r.Logger = s.Logger()
	delivery := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(testkit.Paid("relayed9")))
	delivery.Header.Set("token", "right")
	r.ServeHTTP(httptest.NewRecorder(), delivery)
	aside(s, "sealed", sealed)
	aside(s, "strange", broker.Message{Body: []byte("strange")})
	aside(s, "given-up", broker.Message{Body: []byte("given up")})
}

// aside has such a consumer set a message aside, and names it.
func aside(s *night, name string, m broker.Message) {
	if err := relay.To(s.Inbox, "another-secret-of-thirty-two-characters")(s.Context(), m); err != nil {
		s.Fatal(err)
	}
	for _, table := range []string{"idem_events", "idem_payloads"} {
		s.Exec(`update `+table+` set event = 'notes//' || $1 where event like 'notes//sha256:%'`, name)
	}
}

type publisher func(broker.Message)

func (p publisher) Publish(_ context.Context, m broker.Message) error { p(m); return nil }

// aged has a prune a day ago have seen that ok0 and bad3 are old, and new4 be old since.
func aged(s *night) {
	old := func(event string, days int) {
		s.Exec(`update idem_events set received_at = now() - make_interval(days => $2) where event = $1`, event, days)
		s.Exec(`update idem_payloads set received_at = now() - make_interval(days => $2) where event = $1`, event, days)
	}
	old("notes//ok0", 60)
	old("notes//bad3", 60)
	if _, err := s.Inbox.Prune(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.Exec(`update idem_prunes set ran_at = ran_at - interval '1 day', before_at = before_at - interval '1 day'`)
	old("notes//new4", 70)
}

// paused has bob have paused what resume is about.
func paused(s *night) {
	s.Exec(`insert into idem_pauses (source, type, key, until, actor, reason) values ('notes', 'paid', '', now() + interval '1 hour', 'bob', 'the bank is away')`)
}
