package health_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/inside"
)

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
