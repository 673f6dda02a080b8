package asaas

import (
	"bytes"
	"encoding/json"
)

// AdditionalInfo is the JSON that Asaas adds to an event. Asaas documents an
// object for PAYMENT_SPLIT_DONE and a message for the blocks because of splits,
// but not of which kind of JSON that is.
type AdditionalInfo []byte

// SplitID returns splitId, the id of one of the charge's splits. ok is false
// where there is none, or where the JSON is no object.
func (a AdditionalInfo) SplitID() (id string, ok bool) {
	var object struct{ SplitID *string }
	if json.Unmarshal(a, &object) != nil || object.SplitID == nil {
		return "", false
	}
	return *object.SplitID, true
}

// Message returns the text for people. ok is false where the JSON is no text.
func (a AdditionalInfo) Message() (text string, ok bool) {
	var p *string
	if json.Unmarshal(a, &p) != nil || p == nil {
		return "", false
	}
	return *p, true
}

// UnmarshalJSON implements [json.Unmarshaler]. It takes any JSON.
func (a *AdditionalInfo) UnmarshalJSON(data []byte) error {
	*a = bytes.Clone(data)
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (a AdditionalInfo) MarshalJSON() ([]byte, error) { return json.RawMessage(a).MarshalJSON() }

// SplitID returns the id of the split that a PAYMENT_SPLIT_DONE is about, one of
// Payment.AllSplits; "" where the event names none.
func (e *PaymentEvent) SplitID() string {
	id, _ := e.AdditionalInfo.Or(nil).SplitID()
	return id
}
