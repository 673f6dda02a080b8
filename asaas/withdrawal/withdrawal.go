// Package withdrawal answers the other webhook of Asaas: before money leaves the account, or a
// split is kept, Asaas asks whether it may. The question is no event. It has a URL of its own,
// in the security settings at Asaas:
//
//	http.Handle("POST /webhooks/asaas/withdrawals", withdrawal.NewValidator(token, decide))
//
// See https://docs.asaas.com/docs/mecanismo-para-validacao-de-saque-via-webhooks.
package withdrawal

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/drift"
)

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

var errOrdinaryEvent = errors.New("the body is an event")

// parse reads a verified body. A request for a decision must leave no doubt about its
// subject: a body that has the objects of two kinds is an error.
func parse(body []byte) (*asaas.Withdrawal, error) {
	var head struct {
		Event json.RawMessage
		Type  asaas.WithdrawalType
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, fmt.Errorf("the body does not decode: %w", err)
	}
	switch {
	case head.Event != nil:
		return nil, errOrdinaryEvent
	case !head.Type.Known():
		return nil, errors.New("the kind of the withdrawal is not known: look for a newer version of this module")
	}
	w := new(asaas.Withdrawal)
	if err := json.Unmarshal(body, w); err != nil {
		return nil, fmt.Errorf("the withdrawal has a field in a new shape: look for a newer version of this module: %w", err)
	}
	names := subjects(w)
	switch {
	case names[w.Type] == "":
		return nil, errors.New("the object that the type names is not in the body")
	case len(names) > 1:
		return nil, errors.New("the body has the objects of several kinds of withdrawal")
	case w.Value().Sign() < 0: // below any limit
		return nil, errors.New("the amount of the withdrawal is negative: see it at Asaas")
	}
	if w.Type == asaas.WithdrawalTypePaymentSplit {
		return w, nil // its fields are not documented
	}
	if err := drift.Check(body, []drift.Essential{
		{Zero: w.ID() == "", Paths: []string{names[w.Type] + ".id"}},
		{Zero: w.Value().IsZero(), Paths: []string{names[w.Type] + ".value"}},
	}); err != nil {
		return nil, fmt.Errorf("the withdrawal is not complete: %w", err)
	}
	return w, nil
}

// subjects returns the names of the objects that w has.
func subjects(w *asaas.Withdrawal) map[asaas.WithdrawalType]string {
	names := make(map[asaas.WithdrawalType]string)
	note := func(kind asaas.WithdrawalType, name string, is bool) {
		if is {
			names[kind] = name
		}
	}
	split, isSplit := w.PaymentSplit.Get()
	note(asaas.WithdrawalTypeTransfer, "transfer", has(w.Transfer.Get()))
	note(asaas.WithdrawalTypeBill, "bill", has(w.Bill.Get()))
	note(asaas.WithdrawalTypePixQrCode, "pixQrCode", has(w.PixQrCode.Get()))
	note(asaas.WithdrawalTypeMobilePhoneRecharge, "mobilePhoneRecharge", has(w.MobilePhoneRecharge.Get()))
	note(asaas.WithdrawalTypePixRefund, "pixRefund", has(w.PixRefund.Get()))
	note(asaas.WithdrawalTypePaymentSplit, "paymentSplit", isSplit && len(split.Raw) > 0 && split.Raw[0] == '{')
	return names
}

func has[T any](_ T, ok bool) bool { return ok }
