package console

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/internal/latest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// fault is something that is not well.
type fault struct {
	Source, Check string
	Level         string // bad: a person has to act; warn: it may heal by itself
	Says          template.HTML
	Remedy        template.HTML
	Detail        string // of health, in English
	Href          string // to what it is about
}

const bad, warn = "bad", "warn"

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
	if now.Err != nil {
		_, text := v.told(now.Err)
		all = append(all, fault{Source: s.name, Check: "count", Level: bad, Says: said(v.lang, "The events could not be counted: %s", text)})
	}
	if !now.At.IsZero() && now.Err == nil {
		for _, f := range diagnosis.Causes(now.Value.Findings(string(v.lang))) {
			of, _ := diagnosis.Of(f.Check)
			shown := fault{Source: s.name, Check: f.Check, Level: warn, Says: sentence(f.Problem), Remedy: sentence(f.Remedy), Href: of.Page}
			switch {
			case f.Check == "acknowledged", f.Severity == check.Info && s.events.Inbox.WorkFirst: // which need not have workers
				continue
			case f.Check == "paused":
				shown.Remedy = template.HTML(template.HTMLEscapeString(f.Evidence)) // which begins with a name
			case f.Severity == check.Error:
				shown.Level = bad
			}
			all = append(all, shown)
		}
	}
	for _, q := range queues.Value {
		stopped := fault{Source: s.name, Check: "webhook", Level: bad}
		switch name := cmp.Or(q.Name, q.ID); {
		case !q.Enabled:
			stopped.Says = said(v.lang, "The webhook %s is disabled at the provider: what happens meanwhile never comes.", name)
			all = append(all, stopped)
		case q.Interrupted:
			stopped.Says = said(v.lang, "The provider has stopped its queue %s: nothing is delivered.", name)
			all = append(all, stopped)
		}
	}
	return all
}

// sentence is a text that begins with a capital and ends with a stop.
func sentence(text string) template.HTML {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return template.HTML(template.HTMLEscapeString(string(unicode.ToUpper(first)) + text[size:] + "."))
}

// judged adds what health says to the faults, those that are bad first, and causes before what follows from them.
func (v *visit) judged(all []fault, report health.Report) []fault {
	for _, c := range report.Checks {
		follows := func(o check.Result) bool {
			return !o.Healthy && o.Source == c.Source && diagnosis.Explains(o.Name, c.Name)
		}
		same := slices.IndexFunc(all, func(f fault) bool { return f.Source == c.Source && diagnosis.Same(f.Check, c.Name) })
		switch of, known := diagnosis.Of(c.Name); {
		case c.Healthy && !c.Warning:
			if same >= 0 && all[same].Check == c.Name && c.Name != "webhook" { // by the limits of the application
				all[same].Level = warn
			}
		case same >= 0:
			if !c.Healthy {
				all[same].Level = bad
			}
		case slices.ContainsFunc(report.Checks, follows):
		default:
			f := fault{Source: c.Source, Check: c.Name, Level: bad, Says: said(v.lang, "The check %s fails.", c.Name), Detail: c.String(), Href: of.Page}
			if known {
				f.Says = template.HTML(template.HTMLEscapeString(diagnosis.Say(v.lang, of.Means)))
			}
			if c.Healthy {
				f.Level = warn
			}
			if other := slices.IndexFunc(all, func(o fault) bool { return o.Check == f.Check && o.Detail == f.Detail }); other >= 0 { // one database
				all[other].Source += ", " + f.Source
				continue
			}
			all = append(all, f)
		}
	}
	if postgres := slices.IndexFunc(all, func(f fault) bool { return f.Check == "postgres" && f.Level == bad }); postgres >= 0 {
		if n := slices.IndexFunc(all, func(f fault) bool { return f.Check == "count" }); n >= 0 { // because of that
			all[postgres].Remedy = all[n].Says
		}
		all = slices.DeleteFunc(all, func(f fault) bool { return f.Check == "count" })
	}
	for i, f := range all {
		if f.Href != "" && (f.Check != "unmatched" || v.Unmatched != nil) && slices.ContainsFunc(v.sources, func(s *source) bool { return s.name == f.Source }) {
			all[i].Href += query(field{"source", f.Source})
		} else {
			all[i].Href = ""
		}
	}
	slices.SortStableFunc(all, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(diagnosis.Place(a.Check), diagnosis.Place(b.Check)))
	})
	return all
}
