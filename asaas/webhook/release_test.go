package webhook_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/value"
)

// penalized is an application whose webhook has failed for an hour and a half, and is reached again. An event of
// two hours ago is stored.
type penalized struct {
	*planned
	pool  *pgxpool.Pool
	inbox *idem.Inbox
	id    string // of the webhook
	down  atomic.Bool
}

func newPenalized(t *testing.T) *penalized {
	t.Helper()
	p := &penalized{planned: newPlanned(t), pool: idemtest.Pool(t)}
	if err := idem.Migrate(t.Context(), p.pool); err != nil {
		t.Fatal(err)
	}
	p.inbox = idem.NewInbox(p.pool, p.events)
	p.inbox.Logger = slog.New(slog.DiscardHandler)
	w := wanted()
	w.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		p.inbox.ServeHTTP(w, r)
	})
	p.id = p.fake.AddWebhook(w)
	p.fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	p.fake.Settle()
	p.exec(t, `update idem_events set received_at = now() - interval '2 hours'`)
	p.down.Store(true)
	p.fake.Emit(asaastest.Event("PAYMENT_REFUNDED"))
	p.fake.Advance(90 * time.Minute)
	p.down.Store(false)
	return p
}

func (p *penalized) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := p.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (p *penalized) watch() *webhook.Watch {
	w := webhook.NewWatch(p.client, p.want, p.events)
	w.Release = p.inbox
	return w
}

// removals is how often the penalty was removed.
func (p *penalized) removals() (n int) {
	for _, e := range p.fake.Timeline() {
		if e.Kind == asaastest.BackoffRemoved {
			n++
		}
	}
	return n
}

// stored is the number of events that the application has.
func (p *penalized) stored(t *testing.T) (n int) {
	t.Helper()
	if err := p.pool.QueryRow(t.Context(), `select count(*) from idem_events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// After an hour and a half Asaas's next try is half an hour away.
func TestTheWatchRemovesThePenaltyOfAnOutageThatIsOver(t *testing.T) {
	t.Parallel()
	p := newPenalized(t)
	w := p.watch()
	if held := webhook.Step(w, t.Context(), false); !held || p.removals() != 0 {
		t.Fatalf("the first look finds a queue that is held up: %t; it has removed the penalty %d times: the program may not be reached yet", held, p.removals())
	}
	p.fake.Settle()
	if n := p.stored(t); n != 1 {
		t.Fatalf("%d events are stored before the release, want 1: nothing is tried here", n)
	}
	webhook.Step(w, t.Context(), true)
	p.fake.Settle()
	if p.removals() != 1 || p.stored(t) != 2 {
		t.Fatalf("the penalty was removed %d times, and %d events are stored: want 1 and 2", p.removals(), p.stored(t))
	}
	got, _, err := operator.New(p.inbox, "").LastAction(t.Context(), "release queue", "queue "+p.id)
	if err != nil {
		t.Fatal(err)
	}
	type entry struct{ Actor, Action, Filter, Reason, Result string }
	want := entry{
		"webhook.Watch", "release queue", "queue " + p.id, "the queue is penalized, and no event has come for 5m0s",
		"the penalty was removed; Asaas counted 7 failed deliveries before it, and 0 after it",
	}
	if diff := cmp.Diff(want, entry{got.Actor, got.Action, got.Filter, got.Reason, got.Result}); diff != "" {
		t.Errorf("the audit trail (-want +got):\n%s", diff)
	}
	if held := webhook.Step(w, t.Context(), true); held || p.removals() != 1 {
		t.Errorf("when events come, it is held up: %t; the penalty was removed %d times", held, p.removals())
	}
	if c := w.Examine(t.Context(), check.Limits{})[0]; !c.Healthy || strings.Contains(c.Says, "penalty") {
		t.Errorf("health says %+v", c)
	}
}

func TestTheWatchLeavesAPenaltyThatANewTryWouldNotHeal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		change func(t *testing.T, p *penalized, w *webhook.Watch)
	}{
		{"it was not asked to", func(_ *testing.T, _ *penalized, w *webhook.Watch) { w.Release = nil }},
		{"the queue is stopped, by a person perhaps", func(_ *testing.T, p *penalized, _ *webhook.Watch) {
			p.down.Store(true)
			p.fake.Advance(24 * time.Hour)
		}},
		{"a person has stopped the webhook", func(t *testing.T, p *penalized, _ *webhook.Watch) {
			if _, err := p.client.UpdateWebhook(t.Context(), p.id, asaas.WebhookUpdate{Enabled: value.Of(false)}); err != nil {
				t.Fatal(err)
			}
		}},
		{"events come", func(t *testing.T, p *penalized, _ *webhook.Watch) {
			p.exec(t, `update idem_events set received_at = now()`)
		}},
		{"the application refuses Asaas's token", func(_ *testing.T, p *penalized, _ *webhook.Watch) {
			r := httptest.NewRequest("POST", "/webhooks/asaas", strings.NewReader(`{}`))
			r.Header.Set(asaas.TokenHeader, "the token that Asaas has")
			p.inbox.ServeHTTP(httptest.NewRecorder(), r)
		}},
		{"a person has removed it within the hour", func(t *testing.T, p *penalized, _ *webhook.Watch) {
			release(t, p, "ana", 59*time.Minute)
		}},
		{"the last release has brought nothing", func(t *testing.T, p *penalized, _ *webhook.Watch) {
			release(t, p, "webhook.Watch", 90*time.Minute)
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			p := newPenalized(t)
			w := p.watch()
			test.change(t, p, w)
			before := p.removals()
			for held := range 3 {
				webhook.Step(w, t.Context(), held > 0)
			}
			if n := p.removals() - before; n != 0 {
				t.Errorf("the penalty was removed %d times", n)
			}
		})
	}
}

func TestARightReleaseIsNotHeldUpByAnOldOne(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		by     string
		ago    time.Duration
	}{
		{"a person has done it more than an hour ago", "ana", 61 * time.Minute},
		{"the watch has, and an event came after it", "webhook.Watch", 3 * time.Hour},
	} {
		p := newPenalized(t)
		release(t, p, test.by, test.ago)
		webhook.Step(p.watch(), t.Context(), true)
		if p.removals() != 1 {
			t.Errorf("%s: the penalty was removed %d times, want 1", test.reason, p.removals())
		}
	}
}

// release records a release in the audit trail.
func release(t *testing.T, p *penalized, by string, ago time.Duration) {
	t.Helper()
	p.exec(t, `insert into idem_audit (id, actor, action, source, filter, reason, events, at, ended_at, result)
		values (1, $1, 'release queue', 'asaas', 'queue ' || $2, '', '{}', now() - $3::interval, now(), 'the penalty was removed')`, by, p.id, ago)
}

func TestManyProcessesRemoveAPenaltyOnce(t *testing.T) {
	t.Parallel()
	p := newPenalized(t)
	begin, all := make(chan struct{}), sync.WaitGroup{}
	for range 6 {
		w := p.watch()
		all.Go(func() {
			<-begin
			webhook.Step(w, t.Context(), true)
		})
	}
	close(begin)
	all.Wait()
	if n := p.removals(); n != 1 {
		t.Errorf("six processes removed the penalty %d times", n)
	}
}

func TestAReleaseAfterWhichDeliveriesStillFailIsRed(t *testing.T) {
	t.Parallel()
	p := newPenalized(t)
	w := p.watch()
	p.down.Store(true) // the way is still broken, which the program cannot see
	webhook.Step(w, t.Context(), true)
	if c := w.Examine(t.Context(), check.Limits{})[0]; !c.Healthy || p.removals() != 1 {
		t.Fatalf("after a release, %d of them, health says %+v", p.removals(), c)
	}
	webhook.Step(w, t.Context(), true)
	if c := w.Examine(t.Context(), check.Limits{})[0]; !c.Healthy {
		t.Errorf("no delivery has failed since the release, and health says %+v", c)
	}
	p.fake.Advance(2 * time.Minute)
	webhook.Step(w, t.Context(), true)
	c := w.Examine(t.Context(), check.Limits{})[0]
	if c.Healthy || c.Command != "asaas-queue recover "+p.id+" -sandbox" || !strings.Contains(c.Says, "no new event has come since, though Asaas counts more failed deliveries") {
		t.Errorf("deliveries still fail, and health says %+v", c)
	}
	p.exec(t, `update idem_audit set at = at - interval '2 hours'; update idem_events set received_at = received_at - interval '2 hours'`)
	webhook.Step(w, t.Context(), true)
	if p.removals() != 1 {
		t.Errorf("it removes the penalty again, %d times", p.removals())
	}
	p.down.Store(false)
	p.fake.Advance(time.Hour)
	webhook.Step(w, t.Context(), true)
	if c := w.Examine(t.Context(), check.Limits{})[0]; !c.Healthy {
		t.Errorf("once the event has come, health says %+v", c)
	}
}

func TestAReleaseThatAsaasRefusesIsSaidAndTriedAgainAnHourLater(t *testing.T) {
	t.Parallel()
	p := newPenalized(t)
	w := p.watch()
	look := func(w http.ResponseWriter, r *http.Request, api http.Handler) { api.ServeHTTP(w, r) }
	p.fake.InjectAPI(look, asaastest.APIForbidden)
	for range 3 { // the first is refused, and the others are of the same hour
		webhook.Step(w, t.Context(), true)
	}
	c := w.Examine(t.Context(), check.Limits{})[0]
	if !c.Healthy || !c.Warning || !strings.Contains(c.Says, "the penalty of its queue was not removed at ") || !strings.Contains(c.Says, fmt.Sprint(http.StatusForbidden)) || p.removals() != 0 {
		t.Errorf("it removed the penalty %d times, and health says %+v", p.removals(), c)
	}
	p.exec(t, `update idem_audit set at = at - interval '61 minutes'`)
	webhook.Step(w, t.Context(), true)
	if p.removals() != 1 {
		t.Errorf("an hour later the penalty was removed %d times, want 1", p.removals())
	}
}

// Run makes the two looks.
func TestRunReleasesAsItIsSet(t *testing.T) {
	t.Parallel()
	p := newPenalized(t)
	removed := make(chan struct{})
	way := p.client.Transport
	if way == nil {
		way = http.DefaultTransport
	}
	p.client.Transport = transport(func(r *http.Request) (*http.Response, error) {
		answer, err := way.RoundTrip(r)
		if strings.HasSuffix(r.URL.Path, "/removeBackoff") {
			close(removed)
		}
		return answer, err
	})
	w := p.watch()
	w.Every = time.Millisecond
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	select {
	case <-removed:
	case err := <-ended:
		t.Fatalf("Run has ended: %v", err)
	}
}
