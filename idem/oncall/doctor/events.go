package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// ofEach asks about the events of each source.
func (e *examination) ofEach(ask func(source) (*Finding, error)) (found []Finding, err error) {
	for _, s := range e.sources {
		f, err := ask(s)
		if err != nil {
			return found, err
		}
		if f != nil {
			f.Source = s.name
			found = append(found, *f)
		}
	}
	return found, nil
}

func (e *examination) retention(context.Context) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		if s.retention >= e.redelivery || s.isOutbox {
			return nil, nil
		}
		return &Finding{
			Severity: Error, Problem: "events are forgotten while a provider may still deliver them again: those would run twice",
			Evidence: fmt.Sprintf("Retention is %s, a provider may take %s", days(s.retention), days(e.redelivery)),
			Remedy:   "set Retention to 45 days",
		}, nil
	})
}

// events finds what the tables say of each source: what fails, is parked, is due or is paused.
func (e *examination) events(ctx context.Context) (found []Finding, err error) {
	for _, s := range e.sources {
		now, err := store.TakeSnapshot(ctx, e.db, s.name, 0)
		if err != nil {
			return found, err
		}
		of := diagnosis.Source{Name: s.name, Snapshot: now, Limits: diagnosis.Defaults, Timeout: s.timeout}
		found = append(found, diagnosis.Causes(of.Findings(lang.English))...)
	}
	return found, nil
}

// prune finds that nothing forgets what is older than Retention.
func (e *examination) prune(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		if s.retention == 0 {
			return nil, nil
		}
		ran, oldest, err := store.FindUnpruned(ctx, e.db, s.name, s.retention+e.unpruned, e.unpruned)
		if err != nil || oldest == 0 {
			return nil, err
		}
		last := "no prune has run"
		if ran > 0 {
			last = "the last prune ran " + days(ran) + " ago"
		}
		return &Finding{
			Severity: Warning, Problem: "nothing forgets events that are older than Retention: the tables grow", Evidence: fmt.Sprintf("%s, an event is %s old, and Retention is %s", last, days(oldest), days(s.retention)),
			Remedy: "see in the log why the daily prune of the program fails, or have it prune daily; the command prunes now", Command: "idem prune -source " + s.name,
		}, nil
	})
}

// stuck finds events that wait behind an event that does not exist.
func (e *examination) stuck(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		n, err := store.CountStuck(ctx, e.db, s.name)
		if err != nil || n == 0 {
			return nil, err
		}
		return &Finding{
			Severity: Error, Problem: "events wait for an earlier one that is not there", Evidence: counted(n, "event", "events"),
			Remedy: "rows were changed by hand; prune repairs it", Command: "idem prune -source " + s.name,
		}, nil
	})
}

func (e *examination) conflicts(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		latest, all, err := store.ListConflicts(ctx, e.db, s.name, 1)
		if err != nil || all == 0 {
			return nil, err
		}
		return &Finding{
			Severity: Warning, Problem: "events came again with another body: only one of the two was processed",
			Evidence: fmt.Sprintf("%s, the latest is %s", counted(all, "event", "events"), latest[0].ID),
			Remedy:   "see whether an id was used twice, or two accounts deliver to one address: see docs/alerts.md, WebhookConflict, before you give one a Scope: what was stored without it and comes again is done twice",
			Command:  "idem conflicts -source " + s.name,
		}, nil
	})
}

// scopes finds sources with events with and without a scope: one may have been introduced without moving the
// events that were stored before.
func (e *examination) scopes(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		mixed, err := store.HasMixedScopes(ctx, e.db, s.name)
		if err != nil || !mixed {
			return nil, err
		}
		return &Finding{
			Severity: Warning, Problem: "events are stored with and without a scope: where an account has got one, those of before that come again are done twice",
			Evidence: "idem list -account \"\" shows those without that are not done",
			Remedy:   "if one account has none on purpose, nothing; else stop every process of the source, and move them", Command: "idem help rescope",
		}, nil
	})
}

// counted returns a number with its noun, and its verb.
func counted(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// days is a long time as people say it.
func days(d time.Duration) string {
	if d < 48*time.Hour {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
