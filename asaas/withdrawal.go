package asaas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem/drift"
)

// ID returns the id of the object, as the answer to its creation had it: look
// it up among the withdrawals that your application has asked for. An id of a bill may be digits.
// It is "" only for a split that was sent without one.
func (w *Withdrawal) ID() string {
	id, _ := w.subject()
	return id
}

// Value returns the amount that is to leave the account, in reais. It is 0 for a
// split that was sent without one; any other withdrawal without an amount is
// not decided, see [WithdrawalValidator].
func (w *Withdrawal) Value() Money {
	_, value := w.subject()
	return value
}

// subject returns the fields that every kind of withdrawal has.
func (w *Withdrawal) subject() (id string, value Money) {
	switch w.Type {
	case WithdrawalTypeTransfer:
		t, _ := w.Transfer.Get()
		return t.ID, t.Value
	case WithdrawalTypeBill:
		b, _ := w.Bill.Get()
		return string(b.ID), b.Value
	case WithdrawalTypePixQrCode:
		p, _ := w.PixQrCode.Get()
		return p.ID, p.Value.Or(Money{})
	case WithdrawalTypeMobilePhoneRecharge:
		r, _ := w.MobilePhoneRecharge.Get()
		return r.ID, r.Value
	case WithdrawalTypePixRefund:
		p, _ := w.PixRefund.Get()
		return p.ID, p.Value.Or(Money{})
	case WithdrawalTypePaymentSplit:
		s, _ := w.PaymentSplit.Get()
		return s.ID.Or(""), s.TotalValue.Or(Money{})
	}
	return "", Money{}
}

// WithdrawalSplit is a split that was just settled. Asaas does not document its
// fields: those of a charge's split are set as far as they are there and fit.
type WithdrawalSplit struct {
	Split
	Raw json.RawMessage // the whole object
}

// UnmarshalJSON implements [json.Unmarshaler]. It takes any JSON.
func (s *WithdrawalSplit) UnmarshalJSON(data []byte) error {
	s.Raw = bytes.Clone(data)
	_ = json.Unmarshal(data, &s.Split)
	return nil
}

// MarshalJSON implements [json.Marshaler]. It writes Raw.
func (s WithdrawalSplit) MarshalJSON() ([]byte, error) { return s.Raw.MarshalJSON() }

// withdrawalHead is a body of Asaas's other webhook, as far as it shows that
// it is one.
type withdrawalHead struct {
	Event               json.RawMessage
	Type                WithdrawalType
	Transfer            json.RawMessage
	Bill                json.RawMessage
	PixQRCode           json.RawMessage
	MobilePhoneRecharge json.RawMessage
	PixRefund           json.RawMessage
	PaymentSplit        json.RawMessage
}

func (h *withdrawalHead) subjects() map[WithdrawalType]json.RawMessage {
	return map[WithdrawalType]json.RawMessage{
		WithdrawalTypeTransfer:            h.Transfer,
		WithdrawalTypeBill:                h.Bill,
		WithdrawalTypePixQrCode:           h.PixQRCode,
		WithdrawalTypeMobilePhoneRecharge: h.MobilePhoneRecharge,
		WithdrawalTypePixRefund:           h.PixRefund,
		WithdrawalTypePaymentSplit:        h.PaymentSplit,
	}
}

func isObject(data json.RawMessage) bool { return bytes.HasPrefix(data, []byte("{")) }

// isWithdrawalValidation recognizes the request of Asaas's other webhook, which
// is not an event and is answered with a decision.
func isWithdrawalValidation(body []byte) bool {
	// Spares every ordinary event the parsing. The fields of a split are not documented.
	if bytes.Contains(body, []byte(`"event"`)) && !bytes.Contains(body, []byte(`"paymentSplit"`)) {
		return false
	}
	var head withdrawalHead
	return json.Unmarshal(body, &head) == nil && head.Event == nil && isObject(head.subjects()[head.Type])
}

var errOrdinaryEvent = errors.New("the body is an event")

// parseWithdrawal reads a verified body. A request for a decision must leave no
// doubt about its subject: a body that has the objects of two kinds is an error.
func parseWithdrawal(body []byte) (*Withdrawal, error) {
	var head withdrawalHead
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, fmt.Errorf("the body does not decode: %w", err)
	}
	if head.Event != nil {
		return nil, errOrdinaryEvent
	}
	if _, known := head.subjects()[head.Type]; !known {
		return nil, errors.New("the kind of the withdrawal is not known: look for a newer version of this module")
	}
	if !isObject(head.subjects()[head.Type]) {
		return nil, errors.New("the object that the type names is not in the body")
	}
	for kind, subject := range head.subjects() {
		if kind != head.Type && isObject(subject) {
			return nil, errors.New("the body has the objects of several kinds of withdrawal")
		}
	}
	w := new(Withdrawal)
	if err := json.Unmarshal(body, w); err != nil {
		return nil, fmt.Errorf("the withdrawal has a field in a new shape: look for a newer version of this module: %w", err)
	}
	if w.Type == WithdrawalTypePaymentSplit {
		return w, nil // its fields are not documented
	}
	if err := drift.Check(head.subjects()[w.Type], []drift.Essential{
		{Zero: w.ID() == "", Paths: []string{"id"}},
		{Zero: w.Value().IsZero(), Paths: []string{"value"}},
	}); err != nil {
		return nil, fmt.Errorf("the withdrawal is not complete: %w", err)
	}
	return w, nil
}

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

// Reason returns the reason that was given to Refuse.
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
