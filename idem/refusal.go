package idem

// Reason says, for machines, why a delivery was refused. The providers'
// packages declare theirs: asaas.ReasonWrongToken, zeltapay.ReasonStale. It is a
// constant of few: metrics count by it.
type Reason string

// ReasonNotConfigured refuses every delivery while the application has no
// secret to verify with. The fault is its own, so the answer is 503: the
// provider is to deliver again once that is fixed.
const ReasonNotConfigured Reason = "not_configured"

// Refusal is the error of a delivery that is not genuine, or not an event. It
// is answered with 401 and nothing is stored.
type Refusal struct {
	Source string // the provider
	Reason Reason // for machines
	Hint   string // for people: what was wrong and what to do; never a secret
}

// Error implements error: the provider, the reason and the hint.
func (r *Refusal) Error() string {
	return r.Source + ": delivery refused (" + string(r.Reason) + "): " + r.Hint
}
