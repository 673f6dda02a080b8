// Package alerts tests alerts.yml with Prometheus's own engine. alerts_test.yml says
// what fires when; promtool reads it, too, but is not at hand everywhere.
package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"go.yaml.in/yaml/v3"
)

// story is one story of alerts_test.yml about some series.
type story struct {
	Name   string
	Series []struct{ Series, Values string } `yaml:"input_series"`
	Checks []struct {
		Expr string
		At   model.Duration            `yaml:"eval_time"`
		Want []struct{ Labels string } `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
}

func stories(t *testing.T) []story {
	t.Helper()
	text, err := os.ReadFile("alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Tests []story }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Tests
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	for _, s := range stories(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if len(s.Checks) == 0 {
				t.Fatal("nothing is checked")
			}
			p := newPrometheus(t, s)
			for _, check := range s.Checks {
				var want []string
				for _, sample := range check.Want {
					want = append(want, alert(t, sample.Labels))
				}
				slices.Sort(want)
				if diff := cmp.Diff(want, p.firing(t, check.Expr, time.Duration(check.At))); diff != "" {
					t.Errorf("what fires after %s (-want +got):\n%s", check.At, diff)
				}
			}
		})
	}
}

// alert is ALERTS{…} as text.
func alert(t *testing.T, text string) string {
	t.Helper()
	metric, err := parser.NewParser(parser.Options{}).ParseMetric(text)
	if err != nil {
		t.Fatal(err)
	}
	return metric.String()
}

// prometheus has scraped the series of a story, and evaluates the rules once a
// minute.
type prometheus struct {
	engine *promql.Engine
	alerts storage.Storage // ALERTS: a storage of its own, because the scraped samples go on beyond it
	groups map[string]*rules.Group
	next   time.Duration // of evaluation
}

func newPrometheus(t *testing.T, s story) *prometheus {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 1m\n")
	for _, one := range s.Series {
		fmt.Fprintf(&load, "  %s %s\n", one.Series, one.Values)
	}
	p := &prometheus{engine: promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)}
	scraped := promqltest.LoadedStorage(t, load.String())
	alerts := promqltest.LoadedStorage(t, "")
	t.Cleanup(func() {
		if err := errors.Join(scraped.Close(), alerts.Close()); err != nil {
			t.Error(err)
		}
	})
	p.alerts = alerts
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(p.engine, scraped),
		Appendable: alerts,
		Queryable:  alerts,
		Context:    t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     slog.New(slog.DiscardHandler),
		Parser:     parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, "alerts.yml")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	p.groups = groups
	for _, g := range groups {
		for _, rule := range g.AlertingRules() {
			rule.SetRestored(true) // so that ALERTS is written
		}
	}
	return p
}

// firing evaluates the rules until a time, and returns the result of a query then.
func (p *prometheus) firing(t *testing.T, expr string, at time.Duration) (found []string) {
	t.Helper()
	for ; p.next <= at; p.next += time.Minute {
		for _, g := range p.groups {
			g.Eval(t.Context(), time.Unix(0, 0).Add(p.next))
			for _, rule := range g.Rules() {
				if err := rule.LastError(); err != nil {
					t.Fatalf("%s after %s: %v", rule.Name(), p.next, err)
				}
			}
		}
	}
	query, err := p.engine.NewInstantQuery(t.Context(), p.alerts, nil, expr, time.Unix(0, 0).Add(at))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range vector {
		found = append(found, sample.Metric.String())
	}
	slices.Sort(found)
	return found
}

// Every alert is seen firing, and seen not firing: otherwise it may be one that
// always or never does.
func TestEachAlertIsSeenFiring(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	fired := map[string]bool{}
	for _, s := range stories(t) {
		for _, check := range s.Checks {
			for _, sample := range check.Want {
				fired[regexp.MustCompile(`alertname="(\w+)"`).FindStringSubmatch(sample.Labels)[1]] = true
			}
		}
	}
	names := regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(string(text), -1)
	if len(names) == 0 {
		t.Fatal("alerts.yml has no alert")
	}
	for _, name := range names {
		if !fired[name[1]] {
			t.Errorf("no story has %s fire", name[1])
		}
	}
}
