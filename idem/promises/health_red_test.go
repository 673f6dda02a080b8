package promises_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// An inbox answers 200 whatever its handlers do.
func TestAnInboxWhoseHandlersAllFailMakesHealthRed(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	broken := true
	s.On(func(context.Context, pgx.Tx, *note) error {
		if broken {
			return errors.New("a mistake")
		}
		return nil
	})
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	for n := range 5 {
		s.WantHealth(fmt.Sprintf("%d have failed", n), s.NewHealth(s.Inbox), "", "")
		s.Store(letter(fmt.Sprintf("e%d", n), fmt.Sprintf("o%d", n), 0))
		s.Drain(1)
	}
	s.WantHealth("all of five", s.NewHealth(s.Inbox), "handlers", "5 events have failed in a row in the workers of this process: see the errors")
	hasty := s.NewHealth(s.Inbox)
	hasty.MaxFailing = 0
	s.WantHealth("of those that fail for long it does not ask", hasty, "handlers", "5 events have failed in a row")
	other := s.NewInbox(s.Pool)
	s.WantHealth("another process has not tried any", s.NewHealth(other), "", "")
	s.Exec(`update idem_payloads set received_at = now() - interval '11 minutes'`)
	s.WantHealth("it reads of them", s.NewHealth(other), "failing", "5 events fail")
	s.WantHealth("so does this one", s.NewHealth(s.Inbox), "handlers and failing", "5 events fail")
	off := s.NewHealth(s.Inbox)
	off.MaxFailures, off.MaxFailing = 0, 0
	s.WantHealth("it does not look", off, "", "")
	broken = false
	s.Exec(`update idem_payloads set due_at = now()`)
	s.Drain(5)
	s.WantHealth("the handlers are mended", s.NewHealth(s.Inbox), "", "")
}

func TestOneEventThatFailsAgainAndAgainIsNotAllHandlers(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("a mistake") })
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	s.Inbox.MaxAttempts = 7
	s.Store(letter("e1", "o1", 0))
	for range 7 {
		s.WantHealth("it fails", s.NewHealth(s.Inbox), "", "")
		s.Exec(`update idem_payloads set due_at = now()`)
		s.Drain(1)
	}
	s.WantHealth("it has failed for the last time", s.NewHealth(s.Inbox), "parked", "1 event is parked")
}

func TestParkedEventIsRedUntilItIsAcknowledgedAndTheNextIsRedAgain(t *testing.T) {
	t.Parallel()
	s := testkit.NewTill(t)
	ana := operator.New(s.First, "ana@shop")
	acknowledges := func(f idem.Filter, want int64) {
		t.Helper()
		if n, err := acted(t.Context(), "the shop knows")(ana.PlanAcknowledge(t.Context(), f)); n != want || err != nil {
			t.Errorf("Acknowledge = %d, %v, want %d", n, err, want)
		}
	}
	s.OpenInbox()
	s.Inbox.MaxAttempts = 1
	s.Fails("first", "second")
	s.Store(at(1, "first", "paid", "o1"))
	s.Drain(1)
	s.WantHealth("parked", s.NewHealth(s.First), "parked", "1 event is parked, until a person acts: first first, paid")
	acknowledges(idem.Filter{IDs: []string{"first"}}, 1)
	s.WantHealth("acknowledged", s.NewHealth(s.First), "", "")
	s.WantState("first", idem.StateParked)

	s.Store(at(2, "second", "refunded", "o1")) // waits for the first
	s.WantHealth("another waits for it", s.NewHealth(s.First), "standing", "1 event waits for a parked one: the first for first, of o1")
	acknowledges(idem.Filter{IDs: []string{"first", "second"}}, 1) // the second was never tried
	s.Fails("second")
	s.WantReplayed(idem.Filter{IDs: []string{"first"}}, idem.Replayed{Done: 1})
	s.Drain(1)
	s.WantHealth("and failed in its turn", s.NewHealth(s.First), "parked", "first second, refunded")

	two := s.NewHealth(s.First)
	two.MaxParked = 2
	s.WantHealth("one is allowed", two, "", "")
	two = s.NewHealth(s.First)
	two.MaxParked = 0
	s.WantHealth("it does not look", two, "", "")

	actions, err := ana.Actions(t.Context(), 0, 1)
	if err != nil || len(actions) != 1 {
		t.Fatal(actions, err)
	}
	got := fmt.Sprintf("%s %s: %s, %s, %d", actions[0].Actor, actions[0].Action, actions[0].Reason, actions[0].Result, actions[0].Events)
	if diff := cmp.Diff("ana@shop acknowledge: the shop knows, 1 acknowledged, 1", got); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
	if _, err := acted(t.Context(), "x")(operator.New(s.First, "").PlanAcknowledge(t.Context(), idem.Filter{})); err == nil {
		t.Error("an operator without a name acknowledges")
	}

	second := idem.Filter{IDs: []string{"second"}}
	for _, again := range []struct {
		how  string
		fail func()
	}{
		{"a replay", func() { s.WantReplayed(second, idem.Replayed{Failed: 1}) }},
		{"the provider delivers it", func() { s.Store(at(2, "second", "refunded", "o1")); s.Drain(1) }},
		{"workers", func() {
			if n, err := s.Inbox.Requeue(t.Context(), second); n != 1 || err != nil {
				t.Errorf("Requeue = %d, %v", n, err)
			}
			s.Drain(1)
		}},
		{"a replay of a body that does not decode", func() {
			s.Exec(`update idem_payloads set body = '{"id":5}'`)
			s.WantReplayed(second, idem.Replayed{Failed: 1})
		}},
	} {
		acknowledges(second, 1)
		s.WantHealth("before "+again.how, s.NewHealth(s.First), "", "")
		again.fail()
		s.WantHealth("after "+again.how, s.NewHealth(s.First), "parked", "first second, refunded")
	}
	acknowledges(second, 1)
	s.WantHealth("acknowledged once more", s.NewHealth(s.First), "", "")
}

// It is tried again by itself, for hours.
func TestFailingEventIsRedUntilItIsAcknowledgedAndAgainOnceItIsParked(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("a mistake") })
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	s.Inbox.MaxAttempts = 3
	ana, e1 := operator.New(s.Inbox, "ana@shop"), idem.Filter{IDs: []string{"e1"}}
	does := func(what string, plan func(context.Context, idem.Filter) (*operator.Plan, error), f idem.Filter, want int64) {
		t.Helper()
		if n, err := acted(t.Context(), "the bank is away")(plan(t.Context(), f)); n != want || err != nil {
			t.Errorf("%s = %d, %v, want %d", what, n, err, want)
		}
	}
	again := func(reason, check, says string) {
		t.Helper()
		s.Exec(`update idem_payloads set due_at = now(), received_at = now() - interval '11 minutes' where event like '%/e1'`)
		s.Drain(1)
		s.WantHealth(reason, s.NewHealth(s.Inbox), check, says)
	}
	s.Store(letter("e1", "o1", 0))
	does("Acknowledge of what was never tried", ana.PlanAcknowledge, e1, 0)
	again("it fails", "failing", "1 event fails")
	does("Acknowledge", ana.PlanAcknowledge, idem.Filter{}, 1)
	s.WantHealth("acknowledged", s.NewHealth(s.Inbox), "", "")
	if l, ok, err := ana.Lookup(t.Context(), "", "e1"); !ok || err != nil || l.AcknowledgedAt.IsZero() || l.Acknowledged.Actor != "ana@shop" || l.Acknowledged.Reason != "the bank is away" {
		t.Errorf("Lookup says it is acknowledged by %q for %q at %s, %v, %v", l.Acknowledged.Actor, l.Acknowledged.Reason, l.AcknowledgedAt, ok, err)
	}
	again("it fails again, and is tried again", "", "")
	if stats, err := ana.State(t.Context()); stats.Acknowledged != 1 || stats.FailingAcknowledged != 1 || stats.Failing.Events != 0 || err != nil {
		t.Errorf("State has %d acknowledged, %d of those fail, and %d others, %v, want 1 that does", stats.Acknowledged, stats.FailingAcknowledged, stats.Failing.Events, err)
	}
	does("Unacknowledge", ana.PlanUnacknowledge, e1, 1)
	does("Unacknowledge of what is not acknowledged", ana.PlanUnacknowledge, e1, 0)
	s.WantHealth("taken back", s.NewHealth(s.Inbox), "failing", "1 event fails")
	does("Acknowledge once more", ana.PlanAcknowledge, e1, 1)
	again("nobody tries it any more", "parked", "1 event is parked, until a person acts: first e1, paid")

	s.Store(letter("e2", "o1", 0))
	does("Acknowledge of the parked one", ana.PlanAcknowledge, e1, 1)
	s.WantHealth("what waited behind it is known, too", s.NewHealth(s.Inbox), "", "")
	s.Store(letter("e3", "o1", 0))
	s.WantHealth("another comes to wait", s.NewHealth(s.Inbox), "standing", "2 events wait for parked ones: the first for e1, of o1")
	does("Unacknowledge the parked one", ana.PlanUnacknowledge, e1, 1)
	s.WantHealth("taken back", s.NewHealth(s.Inbox), "standing and parked", "1 event is parked")

	does("Acknowledge before a requeue", ana.PlanAcknowledge, e1, 1)
	if n, err := s.Inbox.Requeue(t.Context(), e1); n != 1 || err != nil {
		t.Errorf("Requeue = %d, %v", n, err)
	}
	again("somebody had it tried again, and it fails", "failing", "1 event fails")

	s.Inbox.MaxAttempts = 1
	again("nobody tries it any more", "standing and parked", "1 event is parked")
	s.Inbox.MaxAttempts = 3
	does("Acknowledge before the provider delivers it again", ana.PlanAcknowledge, e1, 1)
	s.Store(letter("e1", "o1", 0))
	again("the provider had it tried again, and it fails", "failing", "1 event fails")
}

func TestWrongTokenMakesHealthRedUnlessItMayBeAStrangers(t *testing.T) {
	t.Parallel()
	type step struct {
		n     int // deliveries, each at this time after the one before
		every time.Duration
		path  string
		from  string
		token string
		dry   bool
	}
	genuine := step{n: 5, every: time.Minute, path: "/hooks", from: "anybody", token: "right"}
	for _, c := range []struct {
		reason string
		steps  []step
		says   string // of a check that fails; "" if none does
		well   string // of one that passes
	}{
		{"a stranger, and none genuine yet", []step{{n: 100, path: "/hooks", from: "anybody", token: "wrong"}}, "", "100 were refused"},
		{"a stranger without a token", []step{{n: 100, path: "/hooks", from: "anybody"}}, "", "none was refused"},
		{"strangers on many paths", []step{
			genuine, {n: 4, every: time.Hour, path: "/hooks", from: "anybody", token: "wrong"}, {n: 9, path: "/other", from: "anybody", token: "wrong"},
		}, "", "13 were refused"},
		{"four of the provider", []step{{n: 4, path: "/hooks", from: "provider", token: "wrong"}}, "", "4 were refused"},
		{"five of the provider", []step{{n: 5, path: "/hooks", from: "provider", token: "wrong"}}, `5 deliveries in a row to "/hooks" came from the provider's addresses`, ""},
		{"five of the provider without a token", []step{{n: 5, path: "/hooks", from: "provider"}}, `5 deliveries in a row to "/hooks" came`, ""},
		{"it was put right", []step{{n: 5, path: "/hooks", from: "provider", token: "wrong"}, genuine}, "", "none was refused"},
		{"another account is well", []step{
			{n: 5, path: "/shop", from: "provider", token: "wrong"}, genuine,
		}, `5 deliveries in a row to "/shop"`, ""},
		{"the canary has the application's token", []step{
			{n: 5, path: "/hooks", from: "provider", token: "wrong"}, {n: 9, path: "/hooks", from: "anybody", token: "right", dry: true},
		}, `5 deliveries in a row to "/hooks"`, ""},
		{"a canary with a wrong token", []step{{n: 9, path: "/hooks", from: "provider", token: "wrong", dry: true}}, "", "none was refused"},
		{"genuine ones go on", []step{
			genuine,
			{n: 50, path: "/hooks", from: "anybody", token: "wrong"},
			{n: 1, every: time.Hour, path: "/hooks", from: "anybody", token: "right"},
			{n: 50, every: time.Second, path: "/hooks", from: "anybody", token: "wrong"},
		}, "", "50 were refused"},
		{"genuine ones have just stopped", []step{genuine, {n: 5, every: time.Minute, path: "/hooks", from: "anybody", token: "wrong"}}, "", "5 were refused"},
		{"genuine ones have stopped", []step{
			genuine, {n: 5, every: 2 * time.Minute, path: "/hooks", from: "anybody", token: "wrong"},
		}, `no genuine delivery has come to "/hooks" for 10m0s, and 5 were refused`, ""},
		{"they have stopped for so long before", []step{
			{n: 3, every: 8 * time.Hour, path: "/hooks", from: "anybody", token: "right"},
			{n: 15, every: time.Hour, path: "/hooks", from: "anybody", token: "wrong"},
		}, "", "15 were refused"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, open := newEndpoint()
				in.Logger = nil
				for _, step := range c.steps {
					for range step.n {
						time.Sleep(step.every)
						open(refusing(step.path, step.from, step.token, step.dry))
					}
				}
				var found check.Result
				for _, c := range in.Examine(t.Context(), health.New().Limits) {
					if c.Name == "refused" {
						found = c
					}
				}
				if found.Healthy != (c.says == "") || !strings.Contains(found.String(), c.says) || !strings.Contains(found.String(), c.well) {
					t.Errorf("%+v", found)
				}
			})
		})
	}
}

// newEndpoint returns the endpoint of a source, and a function that opens a delivery.
func newEndpoint() (ep *idem.Endpoint, open func(*http.Request)) {
	type insideEndpoint interface {
		Init(source idem.Source)
		Serve(w http.ResponseWriter, r *http.Request, limit time.Duration, process, dryRun func(context.Context, idem.Event) (idem.Outcome, error))
	}
	ep = new(idem.Endpoint)
	in := inside.Of[insideEndpoint](ep)
	in.Init(&guarded{})
	done := func(context.Context, idem.Event) (idem.Outcome, error) { return idem.Done, nil }
	return ep, func(r *http.Request) { in.Serve(httptest.NewRecorder(), r, time.Minute, done, done) }
}

func TestTheLogOfARefusalNamesItsPathAndNoToken(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	in, open := newEndpoint()
	in.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var observed []string
	in.Observe = func(_ context.Context, o idem.Observation) { observed = append(observed, o.Path) }
	open(refusing("/webhooks/asaas/shop?key=hidden", "anybody", "a secret", false))
	open(refusing("/"+strings.Repeat("x", 10_000), "anybody", "a secret", false))
	if said := log.String(); !strings.Contains(said, "path=/webhooks/asaas/shop ") || strings.Contains(said, "hidden") || strings.Contains(said, "a secret") || len(said) > 1000 {
		t.Error(said)
	}
	if diff := cmp.Diff([]string{"/webhooks/asaas/shop", "/" + strings.Repeat("x", 199)}, observed); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

// A small shop has quiet Sundays.
func TestSilenceIsMeasuredByTheHoursThatTheApplicationSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it begins on a Saturday at midnight, UTC
		in, open := newEndpoint()
		in.Logger = nil
		limits := health.New().Limits
		look := func() (found check.Result, ok bool) {
			for _, c := range in.Examine(t.Context(), limits) {
				if c.Name == "silence" {
					return c, true
				}
			}
			return found, false
		}
		if _, ok := look(); ok {
			t.Error("silence is looked at although nobody asked for it")
		}
		limits.MaxSilence = func(at time.Time) time.Duration {
			if at.Weekday() == time.Sunday {
				return 0
			}
			return 2 * time.Hour
		}
		for _, step := range []struct {
			after   time.Duration
			token   string // of a delivery then; "" is none
			healthy bool
			reason  string
		}{
			{2 * time.Hour, "", true, "the process has begun two hours ago"},
			{time.Second, "", false, "longer"},
			{0, "right", true, "a delivery"},
			{3 * time.Hour, "wrong", false, "a stranger"},
			{21 * time.Hour, "", true, "Sunday"},
			{24 * time.Hour, "", false, "Monday"},
			{0, "right", true, "a delivery"},
		} {
			time.Sleep(step.after)
			if step.token != "" {
				open(refusing("/hooks", "anybody", step.token, false))
			}
			if c, ok := look(); !ok || c.Healthy != step.healthy {
				t.Errorf("%s: %+v", step.reason, c)
			}
		}
		limits.MaxSilence = func(time.Time) time.Duration { panic("a mistake") }
		if c, _ := look(); c.Healthy || c.Cause == nil {
			t.Errorf("it panics: %+v", c)
		}
	})
}

// guarded is a provider whose deliveries come from "provider".
type guarded struct{ idem.Routes }

func (*guarded) Name() string { return "guarded" }

func (*guarded) Open(r *http.Request) (idem.Event, error) {
	from, token := r.RemoteAddr, r.Header.Get("token")
	if token == "right" {
		return idem.Event{ID: "e1", Type: "paid"}, nil
	}
	return idem.Event{}, &idem.Refusal{Source: "guarded", Reason: "wrong_token", Hint: "no", WrongSecret: token != "", OfProvider: from == "provider"}
}

func refusing(path, from, token string, dry bool) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
	r.RemoteAddr = from
	r.Header.Set("token", token)
	if dry {
		r.Header.Set(idem.DryRunHeader, "1")
	}
	return r
}
