package idemprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expressions are the queries of the dashboard.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

var (
	named    = regexp.MustCompile(`\b(webhook_\w+)(\{[^}]*\})?`)
	matched  = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// labelsOf are the labels that Prometheus has of a metric, or nil.
func labelsOf(families map[string]*dto.MetricFamily, name string) []string {
	family := families[name]
	labels := []string{"instance", "job"}
	if histogram, ok := strings.CutSuffix(name, "_bucket"); ok {
		family = families[histogram]
		labels = append(labels, "le")
	}
	if family == nil {
		return nil
	}
	for _, l := range family.GetMetric()[0].GetLabel() {
		labels = append(labels, l.GetName())
	}
	return labels
}

// A panel of a metric that is not there is empty, and an alert never fires:
// neither says so.
func TestEachMetricAndLabelOfDashboardAndAlertsIsCollected(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.everything()
	families := s.scrape()
	var rules, tests []string
	for block := range strings.SplitSeq(read(t, "alerts/alerts.yml"), "- alert:") {
		if expr, _, ok := strings.Cut(block, "        labels:"); ok {
			rules = append(rules, expr)
		}
	}
	for line := range strings.SplitSeq(read(t, "alerts/alerts_test.yml"), "\n") {
		if strings.Contains(line, "series: '") {
			tests = append(tests, line)
		}
	}
	for file, all := range map[string][]string{"dashboard.json": expressions(t), "alerts.yml": rules, "alerts_test.yml": tests} {
		metrics := 0
		for _, expr := range all {
			var known []string
			for _, m := range named.FindAllStringSubmatch(expr, -1) {
				metrics++
				labels := labelsOf(families, m[1])
				if labels == nil {
					t.Errorf("%s: there is no metric %s", file, m[1])
				}
				for _, l := range matched.FindAllStringSubmatch(m[2], -1) {
					if !slices.Contains(labels, l[1]) {
						t.Errorf("%s: %s has no label %s", file, m[1], l[1])
					}
				}
				known = append(known, labels...)
			}
			for _, by := range grouping.FindAllStringSubmatch(expr, -1) {
				for label := range strings.SplitSeq(by[1], ", ") {
					if !slices.Contains(known, label) {
						t.Errorf("%s: there is no label %s to group by: %s", file, label, expr)
					}
				}
			}
		}
		if metrics < 15 {
			t.Errorf("%s: %d metrics were found: does this test read it?", file, metrics)
		}
	}
}

func TestEachMetricIsOnTheDashboard(t *testing.T) {
	t.Parallel()
	shown := strings.Join(expressions(t), "\n")
	for name := range table(t) {
		if !strings.Contains(shown, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

func TestEachAlertLinksToAListOfItsOwn(t *testing.T) {
	t.Parallel()
	alerts := regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(read(t, "alerts/alerts.yml"), -1)
	links := regexp.MustCompile(`runbook_url: https://github\.com/paghooks/paghooks/blob/main/docs/alerts\.md#(\S+)`).FindAllStringSubmatch(read(t, "alerts/alerts.yml"), -1)
	headings := regexp.MustCompile(`(?m)^### (\w+)\n\n((?:.+\n)+)`).FindAllStringSubmatch(read(t, "../../../docs/alerts.md"), -1)
	if len(alerts) == 0 || len(links) != len(alerts) {
		t.Fatalf("%d alerts have %d links", len(alerts), len(links))
	}
	var names, described []string
	for n, alert := range alerts {
		names = append(names, alert[1])
		if links[n][1] != strings.ToLower(alert[1]) {
			t.Errorf("%s links to #%s", alert[1], links[n][1])
		}
	}
	for _, h := range headings {
		described = append(described, h[1])
		for _, part := range []string{"- Means: ", "- Look at: ", "- Do: "} {
			if !strings.Contains("\n"+h[2], "\n"+part) {
				t.Errorf("the list of %s has no item %q", h[1], part)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // one may be a page for some labels, and a ticket for others
	slices.Sort(described)
	if diff := cmp.Diff(names, described); diff != "" {
		t.Error("the alerts, and docs/alerts.md (-alerts +docs):\n" + diff)
	}
	for _, link := range regexp.MustCompile(`\]\(#(\w+)\)`).FindAllStringSubmatch(read(t, "../../../docs/alerts.md"), -1) {
		if !slices.ContainsFunc(described, func(d string) bool { return strings.ToLower(d) == link[1] }) {
			t.Errorf("docs/alerts.md links to #%s, which is not there", link[1])
		}
	}
}
