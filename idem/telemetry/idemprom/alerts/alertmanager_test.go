package alerts_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// inhibition is a rule of alertmanager.yml.
type inhibition struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string
}

func inhibitions(t *testing.T) []inhibition {
	t.Helper()
	text, err := os.ReadFile("alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rules []inhibition `yaml:"inhibit_rules"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil || len(file.Rules) == 0 {
		t.Fatalf("alertmanager.yml has %d rules, %v", len(file.Rules), err)
	}
	return file.Rules
}

// matches reports whether an alert has the labels of all matchers, as Alertmanager reads them: name, operator, value with
// or without quotes.
func matches(t *testing.T, matchers []string, alert labels.Labels) bool {
	t.Helper()
	return !slices.ContainsFunc(matchers, func(text string) bool {
		name, value, _ := strings.Cut(text, " ")
		operator, value, _ := strings.Cut(value, " ")
		kind, ok := map[string]labels.MatchType{"=": labels.MatchEqual, "!=": labels.MatchNotEqual, "=~": labels.MatchRegexp, "!~": labels.MatchNotRegexp}[operator]
		m, err := labels.NewMatcher(kind, name, strings.Trim(value, `"`))
		if err != nil || !ok {
			t.Fatalf("%s is no matcher: %v", text, err)
		}
		return !m.Matches(alert.Get(name))
	})
}

// sent are the alerts of those that fire which Alertmanager sends, by name and check. An alert is not inhibited by one
// that is a target of the same rule.
func sent(t *testing.T, firing []string) (names []string) {
	t.Helper()
	var alerts []labels.Labels
	for _, text := range firing {
		metric, err := parser.NewParser(parser.Options{}).ParseMetric(text)
		if err != nil {
			t.Fatal(err)
		}
		alerts = append(alerts, metric)
	}
	for n, alert := range alerts {
		if !slices.ContainsFunc(inhibitions(t), func(rule inhibition) bool {
			return matches(t, rule.Target, alert) && slices.ContainsFunc(alerts, func(by labels.Labels) bool {
				return matches(t, rule.Source, by) && !matches(t, rule.Target, by) &&
					!slices.ContainsFunc(rule.Equal, func(name string) bool { return by.Get(name) != alert.Get(name) })
			})
		}) {
			names = append(names, nameOf(t, firing[n]))
		}
	}
	return names
}

// series is a series of a story.
func series(name, values string) struct{ Series, Values string } {
	return struct{ Series, Values string }{name, values}
}

func TestOneCauseIsOnePage(t *testing.T) {
	t.Parallel()
	red := func(checks ...string) (all []struct{ Series, Values string }) {
		for _, check := range checks {
			all = append(all, series(`webhook_healthy{source="asaas",check="`+check+`",instance="a"}`, "1x5 0x60"))
		}
		return append(all, series(`webhook_backlog_up{source="asaas",instance="a"}`, "1x65"))
	}
	fail := series(`webhook_deliveries_total{source="asaas",type="PAYMENT_RECEIVED",outcome="retrying",instance="a"}`, "0x5 1+1x60")
	attempts := series(`webhook_attempts_total{source="asaas",type="PAYMENT_RECEIVED",outcome="retrying",instance="a"}`, "0x5 2+2x60")
	penalty := series(`webhook_queue_penalized{source="asaas",queue="1",name="shop",instance="a"}`, "0x5 1+1x60")
	soon := series(`webhook_lag_seconds_bucket{source="asaas",type="PAYMENT_RECEIVED",le="300",instance="a"}`, "0x65")
	late := series(`webhook_lag_seconds_bucket{source="asaas",type="PAYMENT_RECEIVED",le="900",instance="a"}`, "0+1x65")
	latest := series(`webhook_lag_seconds_bucket{source="asaas",type="PAYMENT_RECEIVED",le="+Inf",instance="a"}`, "0+1x65")
	quick := series(`webhook_delivery_duration_seconds_bucket{source="asaas",type="PAYMENT_RECEIVED",le="5",instance="a"}`, "0x65")
	slow := series(`webhook_delivery_duration_seconds_bucket{source="asaas",type="PAYMENT_RECEIVED",le="10",instance="a"}`, "0+1x65")
	slowest := series(`webhook_delivery_duration_seconds_bucket{source="asaas",type="PAYMENT_RECEIVED",le="+Inf",instance="a"}`, "0+1x65")
	for _, c := range []struct {
		cause  string
		series []struct{ Series, Values string }
		fires  int // at least, before the inhibition
		want   []string
	}{
		{"Postgres is off", append(red("postgres", "deliveries", "canary"), fail, penalty), 4, []string{"WebhookUnhealthy postgres"}},
		{"Postgres hangs", append(red("postgres", "deliveries", "canary", "workers"), fail, attempts, penalty, quick, slow, slowest, soon, late, latest), 8, []string{"WebhookUnhealthy postgres"}},
		{"a deployment broke the handlers of an inbox", append(red("handlers", "failing", "parked", "standing"), attempts, soon, late, latest), 5, []string{"WebhookUnhealthy handlers"}},
		{"a deployment broke the handlers of a processor", append(red("deliveries", "failing"), fail, penalty), 4, []string{"WebhookDeliveriesFailing"}},
		{"the workers are dead", append(red("workers"), soon, late, latest), 2, []string{"WebhookUnhealthy workers"}},
		{"Asaas has stopped the queue", append(red("webhook", "silence", "canary"), penalty, series(`webhook_queue_interrupted{source="asaas",queue="1",name="shop",instance="a"}`, "0x5 1x60")), 5, []string{"WebhookQueueInterrupted"}},
		{"no secret is configured", append(red("deliveries", "silence"), penalty, series(`webhook_refused_total{source="asaas",reason="not_configured",instance="a"}`, "0x5 1+1x60"), series(`webhook_deliveries_total{source="asaas",type="",outcome="refused",instance="a"}`, "0x5 1+1x60")), 4, []string{"WebhookNotConfigured"}},
		{"the token was changed on one side", append(red("refused", "silence"), penalty, series(`webhook_refused_total{source="asaas",reason="wrong_token",instance="a"}`, "0x5 5+5x60"), series(`webhook_deliveries_total{source="asaas",type="",outcome="refused",instance="a"}`, "0x5 5+5x60")), 4, []string{"WebhookUnhealthy refused"}},
		{"an event is parked, and others wait for it", red("parked", "standing"), 2, []string{"WebhookUnhealthy parked"}},
		{"two causes", red("workers", "parked"), 2, []string{"WebhookUnhealthy parked", "WebhookUnhealthy workers"}},
	} {
		t.Run(c.cause, func(t *testing.T) {
			t.Parallel()
			firing := newPrometheus(t, story{Series: c.series}).firing(t, `ALERTS{alertstate="firing"}`, time.Hour)
			if len(firing) < c.fires {
				t.Errorf("only %d alerts fire: %v", len(firing), firing)
			}
			got := sent(t, firing)
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("what is sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsWrongOfOneSourceHidesNothingOfAnother(t *testing.T) {
	t.Parallel()
	firing := newPrometheus(t, story{Series: []struct{ Series, Values string }{
		series(`webhook_backlog_up{source="asaas",instance="a"}`, "1x65"),
		series(`webhook_healthy{source="asaas",check="postgres",instance="a"}`, "0x65"),
		series(`webhook_healthy{source="zeltapay",check="workers",instance="a"}`, "0x65"),
	}}).firing(t, `ALERTS{alertstate="firing"}`, time.Hour)
	if diff := cmp.Diff([]string{"WebhookUnhealthy postgres", "WebhookUnhealthy workers"}, sent(t, firing)); diff != "" {
		t.Errorf("what is sent (-want +got):\n%s", diff)
	}
}
