package diagnosis

import (
	"slices"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/internal/lang"
)

// Check is one of the checks of package health.
type Check struct {
	Name   string
	Ticket bool      // somebody sees to it in the morning; of the others somebody is woken
	Means  lang.Text // that it fails, and what to do
	Page   string    // of the console, which has what it is about

	explains []string // checks that fail because this one does
}

// Checks are the checks of this project's parts, causes first. docs/alerts.md has a row of each, in this order, and
// alerts.yml a rule for the tickets.
var Checks = []Check{
	{Name: "postgres", Means: "Postgres does not answer, or takes no writes.", explains: []string{
		"deliveries", "silence", "handlers", "answer within", "workers", "clock", "failing", "parked", "standing", "scopes", "broker", "canary",
		"unmatched", "overpaid", "reconcile", "statement",
	}},
	{Name: "webhook", Means: "The webhook is disabled or stopped at the provider, or lacks types of events.", explains: []string{"silence"}},
	{Name: "refused", Means: "Deliveries are refused: a token, a secret or a clock is wrong.", explains: []string{"silence"}},
	{Name: "deliveries", Means: "Deliveries fail here: the provider stops its queue when that goes on."},
	{Name: "silence", Means: "No delivery has come for a long time."},
	{Name: "canary", Means: "The canary does not arrive: real deliveries may not, either."},
	{Name: "handlers", Means: "The handlers fail, event after event: see the errors.", Page: "events?state=failing&", explains: []string{"failing", "parked", "standing"}},
	{Name: "workers", Means: "Events are due, and are not processed.", Page: "events?state=pending&"},
	{Name: "clock", Means: "The database's clock was put back: events wait until it is that late again."},
	{Name: "failing", Means: "Events have been failing for a long time: see the errors.", Page: "events?state=failing&"},
	{Name: "parked", Ticket: true, Means: "Events are parked: see the errors.", Page: "events?state=parked&", explains: []string{"standing"}},
	{Name: "standing", Ticket: true, Means: "Events wait for a parked one.", Page: "blocked?"},
	{Name: "answer within", Means: "Many first tries take too long, and handlers run twice: make them faster, or do without WorkFirst."},
	{Name: "broker", Means: "The broker takes no messages, or none of a type."},
	{Name: "scopes", Means: "Events are stored without an account: one that comes again is done twice."},
	{Name: "unmatched", Ticket: true, Means: "Charges are paid that match nothing of the application's: match each, or give it back.", Page: "unmatched?"},
	{Name: "overpaid", Ticket: true, Means: "Orders got more than their total: give back what is too much."},
	{Name: "reconcile", Ticket: true, Means: "Charges could not be compared with Asaas, or booked, or no run of it has ended for two days: see the log."},
	{Name: "statement", Ticket: true, Means: "The charges and the account's statement differ: an event was lost, or booked wrong."},
	{Name: "answer", Means: "A health check does not return."},
}

// Of returns the check of a name; ok is false for one of the application's own.
func Of(name string) (c Check, ok bool) {
	if n := Place(name); n < len(Checks) {
		return Checks[n], true
	}
	return Check{Name: name}, false
}

// Place returns the place of a check among causes and what follows from them. One of the application's own is behind.
func Place(name string) int {
	n := slices.IndexFunc(Checks, func(c Check) bool { return c.Name == name })
	if n < 0 {
		return len(Checks)
	}
	return n
}

// Explains reports whether a check fails because of another one of its source, so that one of the two is enough.
func Explains(cause, symptom string) bool {
	c, _ := Of(cause)
	return slices.Contains(c.explains, symptom)
}

// Same reports whether two findings of a source are about one cause.
func Same(a, b string) bool { return a == b || Explains(a, b) || Explains(b, a) }

// Causes returns the findings without those that follow from another one of their source.
func Causes(found []check.Finding) (causes []check.Finding) {
	for _, f := range found {
		follows := func(o check.Finding) bool {
			return o.Severity != check.Info && o.Source == f.Source && Explains(o.Check, f.Check)
		}
		if !slices.ContainsFunc(found, follows) {
			causes = append(causes, f)
		}
	}
	return causes
}
