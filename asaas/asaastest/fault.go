package asaastest

// Fault is something that goes wrong with an attempt. Several go together:
// Concurrent|LostAnswer.
type Fault uint

// The faults of an attempt. A receiver's answer counts, unless it
// says otherwise here.
const (
	// Duplicate delivers the event a second time after the answer. The first
	// answer counts.
	Duplicate Fault = 1 << iota
	// Concurrent delivers two copies at the same moment. The answer to the first of
	// them counts.
	Concurrent
	// Swap lets the next event of a SEQUENTIALLY webhook go before this one.
	// The attempt is the next event's then. Alone in its queue, an event keeps
	// its place.
	Swap
	// LostAnswer throws the receiver's answer away: the receiver is done with the
	// event, and Asaas takes it for a failure.
	LostAnswer
	// SlowBody sends the request byte by byte.
	SlowBody
	// CutBody sends half of the body, and ends the connection's sending side.
	CutBody
	// WrongToken sends a token that is not the webhook's.
	WrongToken
)

func (f Fault) has(other Fault) bool { return f&other != 0 }
