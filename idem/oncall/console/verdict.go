package console

import (
	"cmp"
	"context"
	"html/template"
	"slices"

	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/internal/latest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
	"github.com/paghooks/paghooks/internal/lang"
)

// fault is something that is not well.
type fault struct {
	Source, Check string
	Level         string // bad: a person has to act; warn: it may heal by itself
	Says          template.HTML
	Detail        string // of health, in English
	Href          string // to what it is about
}

const bad, warn = "bad", "warn"

// headlines say that a check of health fails, and the remedy, and name the page with what it is about.
var headlines = map[string]struct {
	says lang.Text
	page string
}{
	"postgres":      {"Postgres does not answer, or takes no writes.", ""},
	"deliveries":    {"Deliveries fail here: the provider stops its queue when that goes on.", ""},
	"refused":       {"Deliveries are refused: a token, a secret or a clock is wrong.", ""},
	"silence":       {"No delivery has come for a long time.", ""},
	"handlers":      {"The handlers fail, event after event: see the errors.", "events?state=failing&"},
	"answer within": {"Many first tries take too long, and handlers run twice: make them faster, or do without WorkFirst.", ""},
	"retrying":      {"Events have been failing for a long time: see the errors.", "events?state=failing&"},
	"parked":        {"Events are parked: fix what the errors say, then replay them; or acknowledge them until you do.", "events?state=parked&"},
	"workers":       {"Events are due, and are not processed.", ""},
	"held":          {"Events wait behind a parked one: replay or discard that.", "blocked?"},
	"scopes":        {"Events are stored without an account: one that comes again is done twice.", ""},
	"broker":        {"The broker takes no messages, or none of a type.", ""},
	"clock":         {"The database's clock was put back: events wait until it is that late again.", ""},
	"canary":        {"The canary does not arrive: real deliveries may not, either.", ""},
	"unmatched":     {"Charges are paid that match nothing of the application's: match each, or give it back.", "unmatched?"},
	"reconcile":     {"Charges could not be compared with Asaas, or booked, or no run of it has ended for two days: see the log.", ""},
	"webhook":       {"The webhook is disabled at the provider, or lacks types of events.", ""},
	"answer":        {"A health check does not return.", ""},
	"overpaid":      {"Orders got more than their total: give back what is too much.", ""},
}

// examine has the parts of the program examined.
func (h *Handler) examine(ctx context.Context) (health.Report, error) {
	report := make(chan health.Report, 1)
	go func() { report <- h.Health.Report() }() // which ends by itself, some time
	select {
	case r := <-report:
		return r, nil
	case <-ctx.Done():
		return health.Report{}, ctx.Err()
	}
}

// lacksWorkers reports whether no workers are alive.
func lacksWorkers(n operator.State) bool {
	return !slices.ContainsFunc(n.Workers, func(w operator.Worker) bool { return w.Alive })
}

// faults returns what a source's own numbers say, some of it before health does.
func (v *visit) faults(s *source, now latest.Reading[operator.State], queues latest.Reading[[]gauge.Queue]) (all []fault) {
	n := now.Value
	add := func(check, page, level string, says template.HTML) {
		all = append(all, fault{s.name, check, level, says, "", page})
	}
	if now.Err != nil {
		_, text := v.told(now.Err)
		add("count", "", bad, said(v.lang, "The events could not be counted: %s", text))
	}
	switch {
	case now.At.IsZero() || now.Err != nil || !lacksWorkers(n):
	case n.Pending.Events == 0 && s.events.Inbox.WorkFirst: // it need not have any
	case n.Pending.Events == 0:
		add("workers", "", warn, said(v.lang, "No workers are alive: what comes is stored, and waits for them."))
	default:
		add("workers", "events?state=pending&", bad, count(v.lang, n.Pending.Events, "No workers are alive, and %s event waits for them: start the program that runs the inbox.",
			"No workers are alive, and %s events wait for them: start the program that runs the inbox."))
	}
	for _, p := range n.Pauses {
		add("paused", "", warn, said(v.lang, "Paused until %s: %s. By %s: %s.", p.Until.UTC().Format("2006-01-02 15:04 MST"), v.pausedText(p), p.Actor, p.Reason))
	}
	if n.Failing.Events > 0 {
		add("retrying", "events?state=failing&", warn, count(v.lang, n.Failing.Events, "%s event has failed, and is tried again by itself: see the error.",
			"%s events have failed, and are tried again by themselves: see the errors."))
	}
	for _, q := range queues.Value {
		switch name := cmp.Or(q.Name, q.ID); {
		case !q.Enabled:
			add("webhook", "", bad, said(v.lang, "The webhook %s is disabled at the provider: what happens meanwhile never comes.", name))
		case q.Interrupted:
			add("queue", "", bad, said(v.lang, "The provider has stopped its queue %s: nothing is delivered.", name))
		}
	}
	return all
}

// judged adds what health says to the faults, those that are bad first.
func (v *visit) judged(all []fault, report health.Report) []fault {
	for _, c := range report.Checks {
		i := slices.IndexFunc(all, func(f fault) bool { return f.Source == c.Source && f.Check == c.Name })
		switch line, known := headlines[c.Name]; {
		case c.Healthy:
		case i >= 0:
			all[i].Level = bad
		case known && line.page != "": // which says the rest
			all = append(all, fault{c.Source, c.Name, bad, said(v.lang, line.says), "", line.page})
		case known:
			all = append(all, fault{c.Source, c.Name, bad, said(v.lang, line.says), c.Says, line.page})
		default: // the application's own
			all = append(all, fault{c.Source, c.Name, bad, said(v.lang, "The check %s fails.", c.Name), c.Says, ""})
		}
	}
	for i, f := range all {
		if f.Href != "" && (f.Check != "unmatched" || v.Unmatched != nil) && slices.ContainsFunc(v.sources, func(s *source) bool { return s.name == f.Source }) {
			all[i].Href += query(field{"source", f.Source})
		} else {
			all[i].Href = ""
		}
	}
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.Level, b.Level) })
	return all
}
