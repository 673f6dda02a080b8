package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
)

// Webhook is the webhook of a source, asked for with a client of its provider: an
// *webhook.Watch, for example.
type Webhook interface {
	SourceName() string

	// Problems asks the provider now, and returns a line for each thing that keeps events away, with its meaning,
	// and the command that repairs them, "" for none. Its context ends after a minute.
	Problems(ctx context.Context) (problems []string, command string, err error)
}

// CheckWebhooks returns the faults that keep events from coming, as the providers report them: a webhook that is
// disabled, deleted or stopped, handled types that it is not subscribed to, another order. It is one finding of each
// webhook. No delivery and no table shows that. It changes nothing.
//
// A provider that does not answer within a minute is a finding.
func CheckWebhooks(ctx context.Context, webhooks ...Webhook) (found []Finding) {
	for _, w := range webhooks {
		asking, cancel := context.WithTimeout(ctx, defaults.check)
		problems, command, err := w.Problems(asking)
		cancel()
		if err != nil {
			found = append(found, Finding{
				Check: "webhook", Severity: Warning, Source: w.SourceName(), Problem: "the provider could not be asked for the webhook",
				Evidence: err.Error(), Remedy: "see the key and the address of its API, and whether it is reached from here",
			})
		}
		if len(problems) > 0 {
			found = append(found, Finding{
				Check: "webhook", Severity: Error, Source: w.SourceName(), Problem: someOf(problems), Evidence: "the provider says so", Command: command,
			})
		}
	}
	return found
}

// someOf joins texts, a few of many.
func someOf(all []string) string {
	const most = 3
	if more := len(all) - most; more > 1 {
		return strings.Join(all[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(all, "; ")
}

// CheckHealth returns the checks that fail by the report of a running program, the answer of package health at
// this URL, and its warnings: refused deliveries, a webhook that is disabled, a canary that does not come back. What is
// found already, of the database for example, is left out where the report repeats it, and so is what follows from
// another check. A program that does not answer within ten seconds is a finding.
func CheckHealth(ctx context.Context, url string, already []Finding) (found []Finding) {
	report, err := askHealth(ctx, url)
	if err != nil {
		return []Finding{{
			Check: "health", Severity: Error, Problem: "the program does not say how it is: it may not be running, or be cut off", Evidence: err.Error(),
			Remedy: "see whether it runs; start it. While it is down, deliveries fail, and the provider keeps them",
		}}
	}
	for _, c := range report.Checks {
		repeats := func(f Finding) bool {
			switch {
			case f.Severity == Info:
				return false
			case c.Name != "postgres":
				return f.Source == c.Source && diagnosis.Same(f.Check, c.Name)
			case c.Healthy:
				return f.Check == "connections" // of a pool
			}
			return f.Check == "pooler" || f.Severity == Error && slices.Contains(ofPostgres, f.Check)
		}
		follows := func(o check.Result) bool {
			return !o.Healthy && o.Source == c.Source && diagnosis.Explains(o.Name, c.Name)
		}
		if c.Healthy && !c.Warning || slices.ContainsFunc(already, repeats) || slices.ContainsFunc(report.Checks, follows) {
			continue
		}
		f := Finding{
			Check: c.Name, Severity: Error, Source: c.Source, Problem: c.Says, Evidence: "the program at " + url + " says so", Remedy: c.Remedy, Command: c.Command,
		}
		if c.Healthy {
			f.Severity = Warning
		}
		if f.Command == "idem doctor" { // which is this
			f.Command = ""
		}
		found = append(found, f)
	}
	return found
}

// ofPostgres are the checks of this package that say more of what health's check postgres says.
var ofPostgres = []string{
	"connection", "locks", "writable", "statement timeout", "replication", "rights", "schemas", "migrations", "columns", "indexes", "triggers",
}

func askHealth(ctx context.Context, url string) (report struct{ Checks []check.Result }, err error) {
	ctx, cancel := context.WithTimeout(ctx, defaults.answer)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return report, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return report, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(body, &report)
	}
	if err == nil && report.Checks == nil {
		err = fmt.Errorf("it has no checks")
	}
	if err != nil {
		return report, fmt.Errorf("%s answers %s, which is no report of package health: %w", url, answer.Status, err)
	}
	return report, nil
}
