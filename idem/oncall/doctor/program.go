package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/paghooks/paghooks/idem/health/check"
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
// disabled, deleted or stopped, handled types that it is not subscribed to, another order.
// No delivery and no table shows that. It changes nothing.
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
		for n, p := range problems {
			found = append(found, Finding{
				Check: "webhook", Severity: Error, Source: w.SourceName(), Problem: p,
				Evidence: fmt.Sprintf("the provider says so, %d of %d", n+1, len(problems)), Command: command,
			})
		}
	}
	return found
}

// CheckHealth returns the checks that fail by the report of a running program, the answer of package health at
// this URL: refused deliveries, a webhook that is disabled, a canary that does not come back. What is found
// already, of the database for example, is left out where the report repeats it. A program that does not answer
// within ten seconds is a finding.
func CheckHealth(ctx context.Context, url string, already []Finding) (found []Finding) {
	report, err := askHealth(ctx, url)
	if err != nil {
		return []Finding{{
			Check: "health", Severity: Error, Problem: "the program does not say how it is: it may not be running, or be cut off", Evidence: err.Error(),
			Remedy: "see whether it runs; start it. While it is down, deliveries fail, and the provider keeps them",
		}}
	}
	for _, c := range report.Checks {
		same := func(f Finding) bool { return f.Source == c.Source && f.Check == repeats[c.Name] && f.Severity != Info }
		if !c.Healthy && !slices.ContainsFunc(already, same) {
			found = append(found, Finding{Check: c.Name, Severity: Error, Source: c.Source, Problem: c.Says, Evidence: "the program at " + url + " says so"})
		}
	}
	return found
}

// repeats names the check of this package that finds what a check of health does.
var repeats = map[string]string{
	"retrying": "failing", "handlers": "failing", "parked": "parked", "held": "parked", "workers": "workers", "scopes": "scopes", "webhook": "webhook",
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
