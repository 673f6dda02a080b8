package asaas

import "encoding/json"

// Decision is the answer to a withdrawal. The zero Decision refuses.
type Decision struct {
	approved bool
	reason   string
}

// Approve returns the Decision that lets the money go.
func Approve() Decision { return Decision{approved: true} }

// Refuse returns the Decision that cancels the withdrawal, for good. Asaas gets
// the reason, and people at it may read it; it may be empty.
func Refuse(reason string) Decision { return Decision{reason: reason} }

// Approved reports whether the withdrawal may be made.
func (d Decision) Approved() bool { return d.approved }

// Reason returns why it may not, as it was given to Refuse.
func (d Decision) Reason() string { return d.reason }

// MarshalJSON writes the answer as Asaas reads it: {"status":"APPROVED"}.
func (d Decision) MarshalJSON() ([]byte, error) {
	answer := struct {
		Status       string `json:"status"`
		RefuseReason string `json:"refuseReason,omitempty"`
	}{"REFUSED", d.reason}
	if d.approved {
		answer.Status, answer.RefuseReason = "APPROVED", ""
	}
	return json.Marshal(answer)
}
