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
// is answered with 401, or with 503 where the fault is not the sender's, so that the provider
// delivers again. Nothing is stored.
type Refusal struct {
	Source string // the provider
	Reason Reason // for machines
	Hint   string // for people: the fault and the remedy; never a secret

	// WrongSecret is set if a secret, or a signature, was sent that is not of the
	// application's: a stranger's, or the provider's after a change on one side. Package
	// health tells them apart as well as it can.
	WrongSecret bool

	// SentToken is a hash of the token that was sent, if it is not of the application's; "" for a signature. A
	// stranger guesses, and a provider with another token sends the same one again and again.
	SentToken string

	// Misconfigured is set if the application's own settings are at fault: two of its accounts have one
	// secret, for example. The answer is 503, as it is for ReasonNotConfigured.
	Misconfigured bool

	// SignedBody is the [BodyID] of a delivery that the right secret has signed, at a time that is too far from
	// this server's. The answer is 503, and package health tells how many such bodies there were. "" for all others.
	SignedBody string

	// OfProvider is set if the delivery came from an address that only the provider
	// delivers from, as far as the application knows.
	OfProvider bool
}

// Error implements error: the provider, the reason and the hint.
func (r *Refusal) Error() string {
	return r.Source + ": delivery refused (" + string(r.Reason) + "): " + r.Hint
}

// isOwnFault reports whether the provider is to deliver again once the application is put right.
func (r *Refusal) isOwnFault() bool { return r.Misconfigured || r.Reason == ReasonNotConfigured }
