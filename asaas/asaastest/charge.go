package asaastest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Charge is one charge at Asaas. Its methods let something happen to it and
// return the body of the event, so that all events of a charge agree: ids,
// dates, amounts, and the fields of a boleto, a card or a Pix.
//
// A method panics where that cannot happen to the charge as it is, such as the
// refund of one that is not paid.
//
// A Charge may be used by one goroutine at a time.
type Charge struct {
	// Payment is the charge as it is. Change it to give it, say, an
	// ExternalReference; the next event has it.
	Payment asaas.Payment

	// Now is the time of the next event. The methods move it on, by about as
	// long as it takes at Asaas; move it on further at will.
	Now time.Time

	// Account is the ID of the sub-account that the charge belongs to. Default: "", the account of a [Fake].
	Account string

	happened []asaas.EventType
}

// NewCharge returns a charge that is to be paid in the given way, and that is due
// in a week. It has ids of its own; the rest is the same in every run.
func NewCharge(billing asaas.BillingType, val asaas.Money) *Charge {
	n := fixture.Number()
	now := time.Date(2026, time.August, 8, 20, 45, 13, 0, asaas.Brasilia())
	digits := "00000000000" + strconv.FormatInt(n, 36)
	code := "1_t3S" + digits[len(digits)-11:]
	c := &Charge{Now: now, Payment: asaas.Payment{
		Object:          "payment",
		ID:              "pay_" + code,
		DateCreated:     day(now),
		Customer:        "cus_000005219613",
		Value:           val,
		NetValue:        value.Of(afterFee(val)),
		Description:     value.Of("Pedido de teste"),
		BillingType:     billing,
		DueDate:         day(now.AddDate(0, 0, 7)),
		OriginalDueDate: day(now.AddDate(0, 0, 7)),
		InvoiceURL:      "https://www.asaas.com/000/i/" + code,
		InvoiceNumber:   fmt.Sprintf("%09d", n%1e9),
		Discount:        value.Of(asaas.Discount{Value: value.Of(asaas.Money{}), DueDateLimitDays: value.Of(asaas.Int(0))}),
		Fine:            value.Of(asaas.Fine{Value: value.Of(asaas.Money{})}),
		Interest:        value.Of(asaas.Interest{Value: value.Of(asaas.Money{})}),
	}}
	c.setNulls()
	switch {
	case billing == asaas.BillingTypeBoleto:
		c.Payment.CanBePaidAfterDueDate = value.Of(true)
		c.Payment.NossoNumero = value.Of(c.Payment.InvoiceNumber)
		c.Payment.BankSlipURL = value.Of("https://www.asaas.com/000/b/pdf/" + code)
	case c.isCard():
		c.Payment.ConfirmedDate = value.Null[asaas.Date]()
	}
	return c
}

// setNulls makes the fields null that Asaas sends as null until they have a value.
func (c *Charge) setNulls() {
	p := &c.Payment
	p.InstallmentNumber = value.Null[asaas.Int]()
	for _, text := range []*value.Optional[string]{
		&p.CheckoutSession, &p.PaymentLink, &p.PixTransaction, &p.ExternalReference,
		&p.TransactionReceiptURL, &p.NossoNumero, &p.BankSlipURL,
	} {
		*text = value.Null[string]()
	}
	for _, date := range []*value.Optional[asaas.Date]{&p.PaymentDate, &p.ClientPaymentDate, &p.CreditDate, &p.EstimatedCreditDate} {
		*date = value.Null[asaas.Date]()
	}
	p.OriginalValue, p.InterestValue = value.Null[asaas.Money](), value.Null[asaas.Money]()
	p.LastInvoiceViewedDate, p.LastBankSlipViewedDate = value.Null[asaas.DateTime](), value.Null[asaas.DateTime]()
	p.Escrow, p.Refunds = value.Null[asaas.Escrow](), value.Null[[]asaas.Refund]()
}

// NewInstallments returns the charges of an installment plan of n charges, which
// are due a month after the other. The remainder of the division is in the last.
// It panics where n is not positive, or where total has fractions of a cent.
func NewInstallments(billing asaas.BillingType, total asaas.Money, n int) []*Charge {
	if n < 1 || total.Round(2) != total {
		panic(fmt.Sprintf("asaastest: R$ %s cannot be parted into %d charges: part whole cents into one or more", total, n))
	}
	cents := total.Cents()
	plan := fmt.Sprintf("00000000-0000-4000-8000-%012d", fixture.Number()%1e12)
	var out []*Charge
	for i := range n {
		each := cents / int64(n)
		if i == n-1 {
			each = cents - each*int64(n-1)
		}
		c := NewCharge(billing, asaas.Cents(each))
		due := day(c.Now.AddDate(0, i, 7))
		c.Payment.DueDate, c.Payment.OriginalDueDate = due, due
		c.Payment.Installment = value.Of(plan)
		c.Payment.InstallmentNumber = value.Of(asaas.Int(i + 1))
		c.Payment.Description = value.Of(fmt.Sprintf("Parcela %d de %d. Pedido de teste", i+1, n))
		out = append(out, c)
	}
	return out
}

// NewSubscription returns the first n charges of a subscription, which are made and due a month after the
// other.
func NewSubscription(billing asaas.BillingType, val asaas.Money, n int) []*Charge {
	subscription := fmt.Sprintf("sub_%016d", fixture.Number()%1e16)
	var out []*Charge
	for i := range n {
		c := NewCharge(billing, val)
		c.Now = c.Now.AddDate(0, i, 0)
		due := day(c.Now.AddDate(0, 0, 7))
		c.Payment.DateCreated, c.Payment.DueDate, c.Payment.OriginalDueDate = day(c.Now), due, due
		c.Payment.Subscription = value.Of(subscription)
		out = append(out, c)
	}
	return out
}

// in panics unless the charge is in one of the states.
func (c *Charge) in(next asaas.EventType, states ...asaas.PaymentStatus) {
	if !slices.Contains(states, c.Payment.Status) || c.Payment.Deleted {
		panic(fmt.Sprintf("asaastest: %s cannot come now: %s", next, c.state()))
	}
}

func (c *Charge) state() string {
	switch {
	case c.Payment.Deleted:
		return "the charge is deleted, let it be Restored first"
	case c.Payment.Status == "":
		return "the charge does not exist yet, let it be Created first"
	}
	return fmt.Sprintf("the charge is %s after %s", c.Payment.Status, c.happened)
}

// accountID is the account of all events and of a Fake, unless a body says otherwise.
const (
	accountID = "5d2c7a10-6a1f-4e0b-9d55-0c1b7e2f9a31"
	walletID  = "5d2c7a10-6a1f-4e0b-9d55-0c1b7e2f9a32" // of that account
)

// becomes is the body of an event after which the charge has the status.
func (c *Charge) becomes(eventType asaas.EventType, status asaas.PaymentStatus) []byte {
	c.Payment.Status = status
	return c.event(eventType)
}

// event is the body of an event about the charge as it is now.
func (c *Charge) event(eventType asaas.EventType) []byte {
	return c.eventWith(eventType, value.Optional[asaas.AdditionalInfo]{})
}

// splitEvent is the body of an event about one of its splits.
func (c *Charge) splitEvent(eventType asaas.EventType, id string) []byte {
	info, _ := json.Marshal(map[string]string{"splitId": id}) // a text
	return c.eventWith(eventType, value.Of(asaas.AdditionalInfo(info)))
}

func (c *Charge) eventWith(eventType asaas.EventType, info value.Optional[asaas.AdditionalInfo]) []byte {
	c.happened = append(c.happened, eventType)
	account := asaas.Account{ID: value.Of(accountID), OwnerID: value.Null[string]()}
	if c.Account != "" {
		account = asaas.Account{ID: value.Of(c.Account), OwnerID: value.Of(accountID)}
	}
	body, err := json.Marshal(asaas.PaymentEvent{
		Envelope: asaas.Envelope{
			ID:          newID(eventType),
			Event:       eventType,
			DateCreated: asaas.DateTime(c.Now.Format(time.DateTime)),
			Account:     value.Of(account),
		},
		Payment:        c.Payment,
		AdditionalInfo: info,
	})
	if err != nil {
		panic("asaastest: the charge cannot be written as JSON: " + err.Error())
	}
	return body
}

// isCard reports whether the charge is paid by card.
func (c *Charge) isCard() bool { return strings.HasSuffix(string(c.Payment.BillingType), "_CARD") }

func day(t time.Time) asaas.Date { return asaas.Date(t.Format(time.DateOnly)) }

// afterFee is the rest of an amount after a fee like Asaas's.
func afterFee(value asaas.Money) asaas.Money {
	if fee := asaas.Cents(199); value.Cmp(fee) > 0 {
		return value.Sub(fee)
	}
	return value
}
