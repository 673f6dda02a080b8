package doctor

import (
	"context"
	"fmt"
)

// Webhook is the webhook of a source, asked for with a client of its provider: an
// *asaas.WebhookWatch, for example.
type Webhook interface {
	SourceName() string

	// Problems asks the provider now, and returns a line for each thing that keeps events
	// away, with its meaning, and the repair. Its context ends after a minute.
	Problems(ctx context.Context) (problems []string, advice string, err error)
}

// CheckWebhooks returns the faults that keep events from coming, as the providers report them: a webhook that is
// disabled, deleted or stopped, handled types that it is not subscribed to, another order.
// No delivery and no table shows that. It changes nothing.
//
// A provider that does not answer within a minute is a finding.
func CheckWebhooks(ctx context.Context, webhooks ...Webhook) (found []Finding) {
	for _, w := range webhooks {
		asking, cancel := context.WithTimeout(ctx, defaults.check)
		problems, advice, err := w.Problems(asking)
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
				Evidence: fmt.Sprintf("the provider says so, %d of %d", n+1, len(problems)), Remedy: advice,
			})
		}
	}
	return found
}
