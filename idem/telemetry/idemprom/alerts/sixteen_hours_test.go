package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/idemprom"
	"github.com/paghooks/paghooks/internal/testkit"
)

const (
	oldToken = "the token of before, of 32 characters and more"
	newToken = "the token of now, of 32 characters and more"
)

// shop is an application with a Postgres, to which a fake Asaas delivers on its real
// schedule. A minute of it takes some milliseconds: the rows become older by a minute.
type shop struct {
	*testing.T
	pool   *pgxpool.Pool
	fake   *asaastest.Fake
	events *asaas.Dispatcher
	fails  map[string]bool // by the id of the charge
	minute int
	stops  int // the minute in which Asaas stops the queue; 0 if it does not

	collector *idemprom.Collector // of the process: counters
	receiver  receiver
	another   func() receiver     // of the same events, that has looked at nothing yet
	scraped   map[string][]string // by series: a value for each minute
}

// receiver is an inbox, with its health.
type receiver interface {
	http.Handler
	health.Part
	idem.Receiver
}

func newShop(t *testing.T, open func(*pgxpool.Pool, idem.Source) receiver) *shop {
	t.Helper()
	s := &shop{
		T: t, pool: idemtest.Pool(t), fake: asaastest.New(), events: asaas.NewDispatcher(newToken),
		fails: map[string]bool{}, collector: idemprom.NewCollector(), scraped: map[string][]string{},
	}
	t.Cleanup(s.fake.Close)
	if err := idem.Migrate(t.Context(), s.pool); err != nil {
		t.Fatal(err)
	}
	s.events.AllowFrom = asaas.OfficialAddresses()
	s.events.OnPaymentReceived(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		if s.fails[e.Payment.ID] || s.fails["all"] {
			return errors.New("no such order")
		}
		return nil
	})
	r := open(s.pool, s.events)
	common := operator.New(r, "").Inbox
	common.Logger = nil
	s.collector.Instrument(common)
	s.receiver = r
	s.another = func() receiver {
		another := open(s.pool, s.events)
		operator.New(another, "").Inbox.Logger = nil
		return another
	}
	s.fake.AddWebhook(asaastest.Webhook{
		Token: newToken,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			request.RemoteAddr = asaas.OfficialAddresses()[0].Addr().String() + ":40000"
			if s.fails["token"] {
				request.Header.Set(asaas.TokenHeader, oldToken)
			}
			r.ServeHTTP(w, request)
		}),
	})
	s.fake.Observe = func(e asaastest.Entry) {
		if e.Kind == asaastest.Paused {
			s.stops = s.minute
		}
	}
	return s
}

func first(pool *pgxpool.Pool, events idem.Source) receiver {
	i := idem.NewInbox(pool, events)
	i.WorkFirst = true
	return i
}

func inbox(pool *pgxpool.Pool, events idem.Source) receiver {
	i := idem.NewInbox(pool, events)
	i.PollOnly = true
	return i
}

// pays has Asaas make the event of a charge that is paid.
func (s *shop) pays(charge string) {
	s.fake.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_"+charge), asaastest.Set("payment.id", charge)))
}

// work has the workers of the inbox process all due events.
func (s *shop) work() {
	if err := s.receiver.(*idem.Inbox).Drain(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// workersElsewhere has workers be alive in another process, that do nothing: a first try that fails is left to workers.
func (s *shop) workersElsewhere() { testkit.KeepAlive(s.T, s.pool, s.events.Name()) }

// pass has a minute pass, and scrapes.
func (s *shop) pass(works bool) {
	s.fake.Advance(time.Minute)
	if works {
		s.work()
	}
	older := []string{ // one transaction
		`set local synchronous_commit = off`,
		`update idem_events set received_at = received_at - interval '1 minute' where state <> 'done'`,
		`update idem_payloads set received_at = received_at - interval '1 minute', due_at = due_at - interval '1 minute'`,
	}
	if _, err := s.pool.Exec(s.Context(), strings.Join(older, ";"), pgx.QueryExecModeSimpleProtocol); err != nil {
		s.Fatal(err)
	}
	s.scrape()
	s.minute++
}

// Examine reports the process's own knowledge, and reads the stored events as they are now: a
// receiver does that seldom.
func (s *shop) Examine(ctx context.Context, limits check.Limits) []check.Result {
	ofProcess := func(c check.Result) bool {
		return slices.Contains([]string{"deliveries", "refused", "handlers"}, c.Name)
	}
	stored := health.Of(s.another()).Examine(ctx, limits)
	return append(s.receiver.Examine(ctx, limits), slices.DeleteFunc(stored, ofProcess)...)
}

// scrape keeps the counters of the process, and the gauges of one that has just started:
// they are read every 15 seconds only, of which here an hour has none.
func (s *shop) scrape() {
	s.Helper()
	fresh := idemprom.NewCollector()
	p := idem.NewInbox(s.pool, s.events)
	p.WorkFirst = true
	fresh.Instrument(p)
	h := health.New(s) // another one's report is of the last second
	h.Logger = nil
	fresh.WatchHealth(h.Report)
	for _, c := range []*idemprom.Collector{s.collector, fresh} {
		registry := client.NewRegistry()
		registry.MustRegister(c)
		families, err := registry.Gather()
		if err != nil {
			s.Fatal(err)
		}
		for _, f := range families {
			if (f.GetType() == dto.MetricType_GAUGE) == (c == fresh) {
				s.keep(f)
			}
		}
	}
}

func (s *shop) keep(f *dto.MetricFamily) {
	set := func(name string, value float64, m *dto.Metric, more ...string) {
		labels := slices.Clone(more)
		for _, l := range m.GetLabel() {
			labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		series := name + "{" + strings.Join(append(labels, `instance="a"`), ",") + "}"
		for len(s.scraped[series]) < s.minute {
			s.scraped[series] = append(s.scraped[series], "_")
		}
		s.scraped[series] = append(s.scraped[series], fmt.Sprint(value))
	}
	for _, m := range f.GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			set(f.GetName()+"_bucket", float64(b.GetCumulativeCount()), m, fmt.Sprintf("le=%q", fmt.Sprint(b.GetUpperBound())))
		}
		if h := m.GetHistogram(); h != nil {
			set(f.GetName()+"_bucket", float64(h.GetSampleCount()), m, `le="+Inf"`)
			continue
		}
		set(f.GetName(), m.GetCounter().GetValue()+m.GetGauge().GetValue(), m)
	}
}

// alarms evaluates the rules over all minutes, and returns when each alert fired first.
func (s *shop) alarms() map[string]int {
	s.Helper()
	var told story
	for _, name := range slices.Sorted(maps.Keys(s.scraped)) {
		values := s.scraped[name]
		for len(values) < s.minute {
			values = append(values, "_")
		}
		told.Series = append(told.Series, struct{ Series, Values string }{name, strings.Join(values, " ")})
	}
	p := newPrometheus(s.T, told)
	first := map[string]int{}
	for minute := range s.minute {
		for _, firing := range p.firing(s.T, `ALERTS{alertstate="firing"}`, time.Duration(minute)*time.Minute) {
			if _, ok := first[nameOf(s.T, firing)]; !ok {
				first[nameOf(s.T, firing)] = minute
			}
		}
	}
	return first
}

// nameOf is the alert's name, and the check of health that it is about.
func nameOf(t *testing.T, firing string) string {
	t.Helper()
	metric, err := parser.NewParser(parser.Options{}).ParseMetric(firing)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(metric.Get("alertname") + " " + metric.Get("check"))
}

const sixteenHours = 16 * 60

func TestQuietSundayWithThreeDeliveriesFiresNothing(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*pgxpool.Pool, idem.Source) receiver{"first": first, "inbox": inbox} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, open)
			for minute := range sixteenHours {
				if minute == 2*60 || minute == 9*60 || minute == 15*60 {
					s.pays(fmt.Sprintf("pay_%d", minute))
				}
				s.pass(name == "inbox")
			}
			if diff := cmp.Diff(map[string]int{}, s.alarms()); diff != "" {
				t.Errorf("what fires (-want +got):\n%s", diff)
			}
		})
	}
}

// Each goes on for sixteen hours, on Asaas's schedule. A person must know before Asaas
// stops the queue, which it does after 12 h 50 min of failures.
func TestWhatIsWrongFiresBeforeAsaasStopsTheQueue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		open   func(*pgxpool.Pool, idem.Source) receiver
		works  bool             // whether workers are alive, and process what is due at the end of each minute
		at     func(*shop, int) // the events of a minute
		want   map[string]int   // the alerts, and the minute until which each must fire
		more   map[string]bool  // others that may fire, too
		stops  bool             // whether Asaas stops the queue
	}{
		{
			"the token was changed in the application only", inbox, true,
			func(s *shop, minute int) {
				s.fails["token"] = minute >= 60
				if minute == 30 || minute == 61 {
					s.pays(fmt.Sprintf("pay_%d", minute))
				}
			},
			map[string]int{"WebhookUnhealthy refused": 75},
			nil, true,
		},
		{
			"work first, one charge has no order", first, true,
			func(s *shop, minute int) {
				s.fails["pay_60"] = true
				if minute == 60 {
					s.pays("pay_60")
				}
			},
			map[string]int{"WebhookUnhealthy failing": 100},
			map[string]bool{"WebhookAttemptsFailing": true, "WebhookUnhealthy parked": true},
			false, // it is stored, and parked after the last attempt
		},
		{
			"work first without workers, one charge has no order", first, false,
			func(s *shop, minute int) {
				s.fails["pay_60"] = true
				if minute == 60 {
					s.pays("pay_60")
				}
			},
			map[string]int{"WebhookUnhealthy deliveries": 75},
			map[string]bool{"WebhookDeliveriesFailing": true},
			true, // nobody else would process it
		},
		{
			"the handlers of an inbox all fail", inbox, true,
			func(s *shop, minute int) {
				s.fails["all"] = minute >= 60
				if minute >= 60 && minute < 80 {
					s.pays(fmt.Sprintf("pay_%d", minute))
				}
			},
			map[string]int{"WebhookAttemptsFailing": 80, "WebhookUnhealthy handlers": 70, "WebhookUnhealthy failing": 100},
			map[string]bool{"WebhookUnhealthy parked": true},
			false,
		},
		{
			"the workers of an inbox are dead", inbox, false,
			func(s *shop, minute int) {
				if minute == 60 {
					s.pays("pay_60")
				}
			},
			map[string]int{"WebhookUnhealthy workers": 70},
			nil, false,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, c.open)
			if c.works {
				s.workersElsewhere()
			}
			for minute := range sixteenHours {
				c.at(s, minute)
				s.pass(c.works)
			}
			got := s.alarms()
			for alert, until := range c.want {
				if at, ok := got[alert]; !ok || at > until {
					t.Errorf("%s fires in minute %d, %t; want it until minute %d", alert, at, ok, until)
				}
				delete(got, alert)
			}
			for alert := range c.more {
				delete(got, alert)
			}
			if len(got) > 0 {
				t.Errorf("false alarms: %v", got)
			}
			if (s.stops > 0) != c.stops {
				t.Errorf("Asaas stopped the queue in minute %d, want that it does: %t", s.stops, c.stops)
			}
		})
	}
}

func TestAcknowledgedEventStopsItsAlert(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(pool *pgxpool.Pool, events idem.Source) receiver {
		i := idem.NewInbox(pool, events)
		i.WorkFirst, i.MaxAttempts = true, 10
		return i
	})
	s.workersElsewhere()
	s.fails["pay_1"] = true
	s.pays("pay_1")
	for range 5 * 60 {
		s.pass(true) // parked after the tenth failure
	}
	p := idem.NewInbox(s.pool, s.events)
	p.WorkFirst = true
	plan, err := operator.New(p, "ana").PlanAcknowledge(t.Context(), idem.Filter{IDs: []string{"evt_pay_1"}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := plan.Do(t.Context(), "the shop knows"); r.Acted != 1 || err != nil {
		t.Fatal(r, err)
	}
	for range 60 {
		s.pass(true)
	}
	alarms := s.alarms()
	if at, ok := alarms["WebhookUnhealthy parked"]; !ok || at > 250 {
		t.Errorf("WebhookUnhealthy for what is parked fires in minute %d, %t", at, ok)
	}
	s.scraped = tail(s.scraped, 40)
	s.minute = 40
	if diff := cmp.Diff(map[string]int{}, s.alarms()); diff != "" {
		t.Errorf("what fires after it was acknowledged (-want +got):\n%s", diff)
	}
}

// tail is the last n minutes.
func tail(scraped map[string][]string, n int) map[string][]string {
	last := map[string][]string{}
	for series, values := range scraped {
		last[series] = values[max(0, len(values)-n):]
	}
	return last
}
