package asaas

import (
	"bytes"
	"encoding/json"
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
// not decided by package withdrawal.
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

// isWithdrawalValidation recognizes the request of Asaas's other webhook, which
// is not an event and is answered with a decision: see package withdrawal.
func isWithdrawalValidation(body []byte) bool {
	// Spares every ordinary event the parsing. The fields of a split are not documented.
	if bytes.Contains(body, []byte(`"event"`)) && !bytes.Contains(body, []byte(`"paymentSplit"`)) {
		return false
	}
	var question struct {
		Event                                                                   json.RawMessage
		Type                                                                    WithdrawalType
		Transfer, Bill, PixQRCode, MobilePhoneRecharge, PixRefund, PaymentSplit json.RawMessage
	}
	if json.Unmarshal(body, &question) != nil || question.Event != nil {
		return false
	}
	subjects := map[WithdrawalType]json.RawMessage{
		WithdrawalTypeTransfer:            question.Transfer,
		WithdrawalTypeBill:                question.Bill,
		WithdrawalTypePixQrCode:           question.PixQRCode,
		WithdrawalTypeMobilePhoneRecharge: question.MobilePhoneRecharge,
		WithdrawalTypePixRefund:           question.PixRefund,
		WithdrawalTypePaymentSplit:        question.PaymentSplit,
	}
	return bytes.HasPrefix(subjects[question.Type], []byte("{"))
}
