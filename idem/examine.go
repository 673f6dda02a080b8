package idem

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/count"
	"github.com/paghooks/paghooks/idem/internal/outage"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Examine checks that fewer than MaxFailures deliveries in a row have failed, that the provider's deliveries
// are not refused, and that they arrive. See package health.
func (ep *Endpoint) Examine(_ context.Context, limits check.Limits) []check.Result {
	x := &examination{limits: limits, source: ep.source.Name()}
	if limits.MaxSilence != nil {
		ep.examineSilence(x)
	}
	if limits.MaxFailures > 0 {
		ep.examineDeliveries(x)
		ep.examineRefused(x)
	}
	return x.checks
}

// Examine checks the inbox's deliveries and the handlers of this process, and the broker of an outbox.
// Package health asks Postgres about stored events and workers.
func (i *Inbox) Examine(ctx context.Context, limits check.Limits) []check.Result {
	x := &examination{limits: limits, source: i.source.Name(), checks: i.Endpoint.Examine(ctx, limits)}
	broker := i.outage()
	switch {
	case broker != nil:
		x.examineBroker(broker)
	case limits.MaxFailures > 0:
		n := i.failing.Since(max(limits.MaxFailing, time.Minute))
		x.add("handlers", n < limits.MaxFailures, inARow(n, "event", "events")+" in the workers of this process",
			"see the errors in this application's log, and put right what they have in common")
	}
	if i.WorkFirst {
		i.examineTries(x)
	}
	return x.checks
}

// examineTries checks that first tries end within AnswerWithin: the handlers of others run twice.
func (i *Inbox) examineTries(x *examination) {
	const least, share = 20, 20
	all, slow := i.slow.Of()
	x.add("answer within", all < least || slow*share <= all,
		fmt.Sprintf("of the last %d first tries %d took too long: their handlers run again in workers, and what they do outside of the transaction is done twice", all, slow),
		"make them faster, give them more time before the answer (AnswerWithin), or have them run after it")
}

// examination collects the checks of a part.
type examination struct {
	limits check.Limits
	source string
	checks []check.Result
}

// add adds a check, and returns it. The remedy is of one that is not healthy.
func (x *examination) add(name string, healthy bool, says, remedy string) *check.Result {
	if healthy {
		remedy = ""
	}
	x.checks = append(x.checks, check.Result{Source: x.source, Name: name, Healthy: healthy, Says: says, Remedy: remedy})
	return &x.checks[len(x.checks)-1]
}

func inARow(n int, one, more string) string {
	if n == 1 {
		return "1 " + one + " has failed"
	}
	return fmt.Sprintf("%d %s have failed in a row", n, more)
}

// examineDeliveries checks that genuine deliveries are acknowledged, and names the reasons if not.
func (ep *Endpoint) examineDeliveries(x *examination) {
	n, reasons, hint := ep.failures.InARow()
	healthy, says := n < x.limits.MaxFailures, inARow(n, "delivery", "deliveries")
	if n > 0 {
		says += ": " + reasons
	}
	remedy := "see the errors in this application's log, and put right what they say, before the provider slows down its queue, and stops it (Asaas after 15)"
	if hint != "" {
		remedy += "; the last: " + hint
	}
	x.add("deliveries", healthy, says, remedy)
}

// examineSilence checks that a genuine delivery has come in time.
func (ep *Endpoint) examineSilence(x *examination) {
	now := time.Now()
	silence, limit := ep.refused.Silence(now), time.Duration(0)
	if err := pgtx.Protect(func() error { limit = x.limits.MaxSilence(now); return nil }); err != nil {
		x.add("silence", false, "the application's own MaxSilence has panicked", "see the error in this application's log").Cause = err
		return
	}
	x.add("silence", limit <= 0 || silence <= limit,
		fmt.Sprintf("the last genuine delivery came %s ago, or the process has begun then", silence.Round(time.Second)),
		"see whether the provider's webhook is enabled and delivers (asaas-queue status), and whether it reaches this process")
}

// examineRefused checks that the provider's deliveries are not refused. Two with one wrong token are a warning only:
// strangers could send them.
func (ep *Endpoint) examineRefused(x *examination) {
	says := "none was refused for its token or signature since the last genuine one"
	n, wrong, remedy := ep.refused.Wrong(x.limits.MaxFailures)
	same := ep.refused.Same()
	switch {
	case wrong != "":
		says = wrong
	case n > 0 && x.limits.Failed != nil && ep.refused.NoneSince(x.limits.Failed(x.source)):
		wrong, remedy = fmt.Sprintf("%d were refused for their token or signature since the last genuine one, and the provider counts deliveries that fail", n), count.TokenChanged
		says = wrong
	case same > 1:
		says = fmt.Sprintf("%d were refused with the same wrong token since the last genuine one, as after a change on one side only, or a stranger's", same)
	case n > 0:
		says = fmt.Sprintf("%d were refused for their token or signature since the last genuine one, as strangers' are", n)
	}
	c := x.add("refused", wrong == "", says, remedy)
	if c.Warning = c.Healthy && same > 1; c.Warning {
		c.Remedy = count.TokenChanged
	}
}

// examineBroker checks that an outbox's broker takes messages, and those of each type. Waiting messages are due
// again and again, so the age of due events does not show an outage.
func (x *examination) examineBroker(broker *outage.Outage) {
	since, err := broker.Begun()
	whole, refused, cause := broker.IsWhole(), []string{}, error(nil)
	for _, t := range broker.Types() {
		if !whole && x.limits.MaxFailures > 0 && t.Events >= x.limits.MaxFailures {
			refused, cause = append(refused, fmt.Sprintf("%s for %s", t.Name, time.Since(t.Since).Round(time.Second))), t.Err
		}
	}
	switch age := time.Since(since); {
	case len(refused) > 0:
		x.add("broker", false, "it takes no message of some types, and several have failed: "+strings.Join(refused, ", "),
			"see the error in this application's log; the others are published, and these wait, at most as long again once one of theirs "+
				"goes through; idem requeue -state pending has them tried at once").Cause = cause
	case err != nil && x.limits.MaxPending > 0:
		x.add("broker", age <= x.limits.MaxPending, fmt.Sprintf("it has taken no message for %s", age.Round(time.Second)),
			"see the error in this application's log; the messages wait, and are published once it is available").Cause = err
	case x.limits.MaxPending > 0:
		x.add("broker", true, "it has taken the last message, or none was published yet", "")
	}
}
