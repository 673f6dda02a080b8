package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/terminal"
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

// failing finds events that fail and are tried again.
func (e *examination) failing(ctx context.Context) ([]Finding, error) {
	return e.trouble(ctx, false, func(f *Finding, t store.Trouble, works bool) {
		f.Problem = "%s, tried again by the workers"
		f.Remedy = "put right what the error says, and deploy it; the command has all tried at once, not when they are due"
		f.Command = "idem requeue -source %s -state pending -failed"
		if !works {
			f.Problem = "%s, and no workers are alive to try them again"
		}
		f.Problem = fmt.Sprintf(f.Problem, counted(t.Events, "event fails", "events fail"))
	})
}

// paused finds events that do not begin because a person has decided so.
func (e *examination) paused(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		pauses, err := store.ListPauses(ctx, e.db, s.name)
		if err != nil || len(pauses) == 0 {
			return nil, err
		}
		f := &Finding{Severity: Warning, Problem: "events are paused: deliveries are stored, and none of these events begins", Remedy: "let it end, or end it"}
		f.Command = "idem resume -source " + s.name
		if of := pauses[0]; of.Type != "" {
			f.Command += " -type " + terminal.Quoted(of.Type)
		}
		if of := pauses[0]; of.Key != "" {
			f.Command += " -entity " + terminal.Quoted(of.Key)
		}
		for _, p := range pauses {
			f.Evidence = strings.TrimPrefix(fmt.Sprintf("%s; %s, until %s, by %s: %s",
				f.Evidence, operator.Pause(p), p.Until.UTC().Format("2006-01-02 15:04 MST"), p.Actor, p.Reason), "; ")
		}
		return f, nil
	})
}

// parked finds events to which nothing happens by itself.
func (e *examination) parked(ctx context.Context) ([]Finding, error) {
	return e.trouble(ctx, true, func(f *Finding, t store.Trouble, works bool) {
		f.Problem = counted(t.Events, "event is", "events are") + " parked, until a person acts"
		f.Remedy = "put right what the error says, and deploy it; then"
		if f.Command = "idem requeue -source %s -state parked"; !works {
			f.Remedy += ", with your handlers, as no workers are alive"
			f.Command = "idem replay -source %s -state parked"
		}
		sayUnreadable(f, t)
	})
}

// sayUnreadable says what to do about bodies that name no event, which replays do not help.
func sayUnreadable(f *Finding, t store.Trouble) {
	const remedy = "have the gateway or middleware in front of the receiver pass bodies on unchanged, see the error; have the provider deliver those events again, or book what they " +
		"said in another way (charges.Reconcile for Asaas's charges); then discard these"
	for _, of := range t.Types {
		switch {
		case of.Type != store.UnreadableType:
		case of.Events == t.Events:
			f.Remedy = remedy + "; the command lists them"
			f.Command = "idem list -source %s -type " + store.UnreadableType
		default:
			f.Remedy = fmt.Sprintf("for the %d of type %s: %s. For the others: %s", of.Events, store.UnreadableType, remedy, f.Remedy)
		}
	}
}

// trouble has say describe the events of each source that fail, or are parked.
func (e *examination) trouble(ctx context.Context, parked bool, say func(f *Finding, t store.Trouble, works bool)) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		t, err := store.FindTrouble(ctx, e.db, s.name, parked)
		if err != nil || t.Events+t.Acknowledged == 0 {
			return nil, err
		}
		if t.Events == 0 {
			return &Finding{
				Severity: Info, Problem: "somebody has acknowledged what fails or is parked", Evidence: counted(t.Acknowledged, "event", "events"),
				Command: "idem list -source " + s.name + " -failed",
			}, nil
		}
		workers, err := store.LivingWorkers(ctx, e.db, s.name)
		f := &Finding{Severity: Error}
		say(f, t, len(workers) > 0)
		f.Command = fmt.Sprintf(f.Command, s.name)
		if t.Waiting > 0 {
			f.Problem += "; " + counted(t.Waiting, "event waits", "events wait") + " behind"
		}
		var types []string
		for _, of := range t.Types {
			types = append(types, fmt.Sprintf("%s %d", of.Type, of.Events))
		}
		f.Evidence = fmt.Sprintf("%s; the oldest came %s ago", strings.Join(types, ", "), days(t.Oldest))
		if t.Error != "" {
			f.Evidence += fmt.Sprintf("; last error of %d: %s", t.Same, t.Error)
		}
		if t.Acknowledged > 0 {
			f.Evidence += fmt.Sprintf("; %d more are acknowledged", t.Acknowledged)
		}
		return f, err
	})
}

// workers finds due events that no worker claims.
func (e *examination) workers(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(s source) (*Finding, error) {
		workers, err := store.LivingWorkers(ctx, e.db, s.name)
		if err != nil {
			return nil, err
		}
		patience := e.notTaken
		if len(workers) == 0 {
			patience = 0
		}
		age, err := store.OldestUnclaimed(ctx, e.db, s.name, patience)
		if err != nil || age <= 0 {
			return nil, err
		}
		f := &Finding{
			Severity: Error, Problem: "events are due, and no workers are alive", Evidence: "the oldest is due for " + age.Round(time.Second).String(),
			Remedy:  "start the program that runs the inbox (idem.Serve, or Inbox.Run); where none can run, the command with your handlers",
			Command: "idem replay -source " + s.name + " -state pending",
		}
		if len(workers) > 0 {
			f.Severity, f.Problem = Warning, "the workers are behind"
			f.Remedy = "see how long handlers take, then run more workers or processes; the database's load may be the limit"
			f.Command = "watch idem stats"
		}
		return f, nil
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
