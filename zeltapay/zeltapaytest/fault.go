package zeltapaytest

// Fault is something that goes wrong with an attempt. Several go together: Concurrent|LostAnswer.
type Fault uint

// The faults of an attempt. A receiver's answer counts, unless it says otherwise here.
const (
	// Duplicate delivers the event a second time after the answer. The first answer counts.
	Duplicate Fault = 1 << iota
	// Concurrent delivers two copies at the same moment. The answer to the first of them counts.
	Concurrent
	// Swap lets another event that is due at this moment go before this one. The attempt is the other event's then. When
	// no other is due, an event keeps its place.
	Swap
	// LostAnswer throws the receiver's answer away: the receiver is done with the event, and Zelta Pay takes it for a
	// failure.
	LostAnswer
	// SlowBody sends the body byte by byte.
	SlowBody
	// CutBody sends half of the body, and breaks the connection. No answer gets back.
	CutBody
	// WrongSecret signs with a secret that is not the webhook's.
	WrongSecret
	// Stale signs with a time an hour ago.
	Stale
	// OtherEventID sends a Zeltapay-Event-Id that is not the body's eventId. The header is not signed, and nothing
	// promises that the two are equal.
	OtherEventID
	// OtherEventType sends a Zeltapay-Event-Type that is not the body's type.
	OtherEventType
	// OtherTimestamp sends a Zeltapay-Timestamp that is not the signature's t.
	OtherTimestamp
)

func (f Fault) has(other Fault) bool { return f&other != 0 }
