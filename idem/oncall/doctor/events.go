package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// ofEach asks about the events of each source.
func (e *examination) ofEach(ask func(*operator.Operator) (*Finding, error)) (found []Finding, err error) {
	for _, o := range e.operators {
		f, err := ask(o)
		if err != nil {
			return found, err
		}
		if f != nil {
			f.Source = o.SourceName()
			found = append(found, *f)
		}
	}
	return found, nil
}

func (e *examination) retention(context.Context) ([]Finding, error) {
	return e.ofEach(func(o *operator.Operator) (*Finding, error) {
		if o.Retention.Events >= e.redelivery || slices.Contains(e.outboxes, o.SourceName()) {
			return nil, nil
		}
		return &Finding{
			Severity: Error, Problem: "events are forgotten while a provider may still deliver them again: those would run twice",
			Evidence: fmt.Sprintf("Retention is %s, a provider may take %s", days(o.Retention.Events), days(e.redelivery)),
			Remedy:   "set Retention to 45 days",
		}, nil
	})
}

// workers finds due events that no worker claims.
func (e *examination) workers(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(o *operator.Operator) (*Finding, error) {
		age, err := store.OldestUnclaimed(ctx, e.db, o.SourceName(), e.notTaken)
		if err != nil || age == 0 {
			return nil, err
		}
		works, err := store.HasWorkers(ctx, e.db, o.SourceName())
		f := &Finding{
			Severity: Error, Problem: "events are due, and no workers are alive", Evidence: "the oldest is due for " + age.Round(time.Second).String(),
			Remedy: "replay them with the application's own program (idem replay -state pending) if it has a Processor only, and so no workers; else start the program that runs the inbox (idem.Serve, or Inbox.Run)",
		}
		if works {
			f.Severity, f.Problem = Warning, "the workers are behind"
			f.Remedy = "see how long handlers take, then run more workers or processes; the database's load may be the limit"
		}
		return f, err
	})
}

// stuck finds events that wait behind an event that does not exist.
func (e *examination) stuck(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(o *operator.Operator) (*Finding, error) {
		n, err := store.CountStuck(ctx, e.db, o.SourceName())
		if err != nil || n == 0 {
			return nil, err
		}
		return &Finding{
			Severity: Error, Problem: "events wait for an earlier one that is not there", Evidence: plural(n, "event"),
			Remedy: "run idem prune, which repairs it; it happens where rows were changed by hand",
		}, nil
	})
}

func (e *examination) parked(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(o *operator.Operator) (*Finding, error) {
		s, err := o.Stats(ctx)
		if err != nil || s.Parked.Events == 0 {
			return nil, err
		}
		return &Finding{
			Severity: Warning, Problem: "events are parked: nothing happens to them by itself",
			Evidence: plural(s.Parked.Events, "event") + ", the oldest of " + days(s.Parked.Oldest) + " ago",
			Remedy:   "see why with idem list -state parked; after a fix, idem replay, or idem requeue where workers run",
		}, nil
	})
}

func (e *examination) blocked(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(o *operator.Operator) (*Finding, error) {
		oldest, all, err := store.ListBlocked(ctx, e.db, o.SourceName(), 1)
		if err != nil || all.Entities == 0 {
			return nil, err
		}
		return &Finding{
			Severity: Warning, Problem: "entities are blocked: their later events wait for an earlier one",
			Evidence: fmt.Sprintf("%d blocked, %s wait; %s waits longest, for %s", all.Entities, plural(all.Waiting, "event"), oldest[0].Key, days(oldest[0].Age)),
			Remedy:   "see idem blocked; after a fix, idem replay the first event of each, or idem requeue it where workers run",
		}, nil
	})
}

func (e *examination) conflicts(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(o *operator.Operator) (*Finding, error) {
		latest, all, err := o.Conflicts(ctx, 1)
		if err != nil || all == 0 {
			return nil, err
		}
		return &Finding{
			Severity: Warning, Problem: "events came again with another body: only one of the two was processed",
			Evidence: fmt.Sprintf("%s, the latest is %s", plural(all, "event"), latest[0].ID),
			Remedy:   "see whether an id was used twice, or two accounts deliver to one address: see docs/alerts.md, WebhookConflict, before you give one a Scope: what was stored without it and comes again is done twice",
		}, nil
	})
}

// days is a long time as people say it.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// Webhook is the webhook of a source, asked for with a client of its provider: an
// *webhook.Watch, for example.
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
