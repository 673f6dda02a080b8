package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// examination is one look at a part.
type examination struct {
	limits Limits
	source string
	checks []Check
}

func (x *examination) add(name string, healthy bool, says string) {
	x.checks = append(x.checks, Check{Source: x.source, Name: name, Healthy: healthy, Says: says})
}

// because notes the cause of the last check's result.
func (x *examination) because(err error) {
	x.checks[len(x.checks)-1].Cause = err
}

// Examine reports how deliveries went: whether fewer than MaxFailures in a row have
// failed, and whether the provider's are refused. See package health.
func (in *Endpoint) Examine(_ context.Context, limits Limits) []Check {
	x := &examination{limits: limits, source: in.source.Name()}
	in.examineDeliveries(x)
	return x.checks
}

// examineDeliveries adds whether deliveries fail.
func (in *Endpoint) examineDeliveries(x *examination) {
	in.examineSilence(x)
	if x.limits.MaxFailures <= 0 {
		return
	}
	n := in.failures.Load()
	says := fmt.Sprintf("%d deliveries have failed in a row", n)
	healthy := n < int64(x.limits.MaxFailures)
	if !healthy {
		says += ": the provider will slow down its queue, and stop it (Asaas after 15): see the errors in this application's log, and put right what they say"
	}
	x.add("deliveries", healthy, says)
	in.examineRefused(x)
}

// examineSilence adds whether no genuine delivery has come for too long.
func (in *Endpoint) examineSilence(x *examination) {
	if x.limits.MaxSilence == nil {
		return
	}
	now := time.Now()
	silence, limit := in.refused.Silence(now), time.Duration(0)
	if err := pgtx.Protect(func() error { limit = x.limits.MaxSilence(now); return nil }); err != nil {
		x.add("silence", false, "MaxSilence has panicked: see the error in this application's log")
		x.because(err)
		return
	}
	says := fmt.Sprintf("the last genuine delivery came %s ago, or the process has begun then", silence.Round(time.Second))
	healthy := limit <= 0 || silence <= limit
	if !healthy {
		says += ": see whether the provider's webhook is enabled and delivers (asaas-queue status), and whether it reaches this process"
	}
	x.add("silence", healthy, says)
}

// examineRefused adds whether the provider's deliveries are refused.
func (in *Endpoint) examineRefused(x *examination) {
	switch n, wrong := in.refused.Wrong(x.limits.MaxFailures); {
	case wrong != "":
		x.add("refused", false, wrong)
	case n > 0:
		x.add("refused", true, fmt.Sprintf("%d were refused for their token or signature since the last genuine one, as strangers' are", n))
	default:
		x.add("refused", true, "none was refused for its token or signature since the last genuine one")
	}
}

// examineFailing adds whether the workers of this process fail at all events.
func (x *examination) examineFailing(i *Inbox) {
	if _, ok := i.source.(dependent); ok || x.limits.MaxFailures <= 0 { // the check of an outbox covers sources that need a broker
		return
	}
	n := i.failing.Since(max(x.limits.MaxRetrying, time.Minute))
	says := fmt.Sprintf("%d events have failed in a row in the workers of this process", n)
	healthy := n < x.limits.MaxFailures
	if !healthy {
		says += ": see the errors in this application's log, and put right what they have in common"
	}
	x.add("handlers", healthy, says)
}
