package asaas

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
)

// PaymentFilter chooses charges. Days are as 2026-08-08 in Brasília, first and last; what is empty chooses all.
type PaymentFilter struct {
	ExternalReference        string // your own id
	CreatedFrom, CreatedTo   Date   // of the charge
	PaidFrom, PaidTo         Date   // when its money came; a card's comes a month after it is confirmed
	CreditedFrom, CreditedTo Date   // when its money is to come; a card keeps the day when it is given back
}

// Payments lists up to 100 charges that are not removed, from the row offset on. Asaas promises no order of the rows,
// and they move when charges are made or removed meanwhile: package charges reads them so that none is missed.
//
// See https://docs.asaas.com/reference/list-payments.
func (c *Client) Payments(ctx context.Context, f PaymentFilter, offset int) (*PaymentPage, error) {
	query := pageOf(offset, map[string]Date{
		"dateCreated[ge]": f.CreatedFrom, "dateCreated[le]": f.CreatedTo,
		"paymentDate[ge]": f.PaidFrom, "paymentDate[le]": f.PaidTo,
		"estimatedCreditDate[ge]": f.CreditedFrom, "estimatedCreditDate[le]": f.CreditedTo,
	})
	query.Set("externalReference", f.ExternalReference)
	return send[PaymentPage](ctx, c, operation{name: "Payments", method: http.MethodGet, path: "/payments", query: query})
}

// CreatePayment makes a charge. Asaas makes another one each time that it is called: there is no key of idempotency.
// So store the order first, give its id as ExternalReference, and look for a charge with it, by [Client.Payments],
// before you call CreatePayment. If the Outcome of the error is [CallUnknown], the charge may have been made: wait
// some minutes, and look again. The guide docs/create-a-charge.md has a function that does all of that.
//
// See https://docs.asaas.com/reference/create-new-payment.
func (c *Client) CreatePayment(ctx context.Context, p PaymentCreate) (*Payment, error) {
	return send[Payment](ctx, c, operation{name: "CreatePayment", method: http.MethodPost, path: "/payments", body: p})
}

// Payment returns a charge as it is now. The error is an [*APIError] with the status 404 for one that Asaas does not
// show: it may be removed, or belong to the account of another key.
//
// See https://docs.asaas.com/reference/retrieve-a-single-payment.
func (c *Client) Payment(ctx context.Context, id string) (*Payment, error) {
	return send[Payment](ctx, c, operation{name: "Payment", method: http.MethodGet, path: "/payments/{id}", id: id})
}

// Customer returns a customer, for whose charges see Customer of [Payment]. It has personal data, which are not
// printed.
//
// See https://docs.asaas.com/reference/retrieve-a-single-customer.
func (c *Client) Customer(ctx context.Context, id string) (*Customer, error) {
	return send[Customer](ctx, c, operation{name: "Customer", method: http.MethodGet, path: "/customers/{id}", id: id})
}

// Statement lists up to 100 movements of the account's money between two days, first and last, from the row offset
// on: fees and transfers, and those of charges, whatever their age.
//
// See https://docs.asaas.com/reference/retrieve-extract.
func (c *Client) Statement(ctx context.Context, from, until Date, offset int) (*TransactionPage, error) {
	days := map[string]Date{"startDate": from, "finishDate": until}
	return send[TransactionPage](ctx, c, operation{name: "Statement", method: http.MethodGet, path: "/financialTransactions", query: pageOf(offset, days)})
}

// Chargebacks lists up to 100 chargebacks whose dispute began between two days, first and last, from the row offset on.
//
// See https://docs.asaas.com/reference/list-chargebacks.
func (c *Client) Chargebacks(ctx context.Context, from, until Date, offset int) (*ChargebackPage, error) {
	days := map[string]Date{"originDisputeDate[ge]": from, "originDisputeDate[le]": until}
	return send[ChargebackPage](ctx, c, operation{name: "Chargebacks", method: http.MethodGet, path: "/chargebacks/", query: pageOf(offset, days)})
}

// AccountStatus returns the state of the key's account, and its id.
//
// See https://docs.asaas.com/reference/consult-registration-status-of-the-account.
func (c *Client) AccountStatus(ctx context.Context) (*AccountStatus, error) {
	return send[AccountStatus](ctx, c, operation{name: "AccountStatus", method: http.MethodGet, path: "/myAccount/status"})
}

const pageSize = 100 // the most that Asaas gives

// pageOf returns the query of a page of what days choose.
func pageOf(offset int, days map[string]Date) url.Values {
	query := url.Values{"offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(pageSize)}}
	for name, day := range days {
		query.Set(name, string(day))
	}
	return query
}

// check returns an error for JSON that is not a page of charges.
func (p *PaymentPage) check() error { return checkEach(p.Data, (*Payment).check) }

// check returns an error for JSON that is not a page of the statement.
func (p *TransactionPage) check() error {
	if p.Data.IsZero() {
		return errNoList
	}
	return nil
}

// check returns an error for JSON that is not a page of chargebacks.
func (p *ChargebackPage) check() error {
	if p.Data.IsZero() {
		return errNoList
	}
	return nil
}

// check returns an error for JSON that is not a charge.
func (p *Payment) check() error {
	if p.ID == "" || p.Status == "" {
		return errors.New("it is no charge, it has no id or no status: see the API's address")
	}
	return nil
}

// check returns an error for JSON that is not a customer.
func (c *Customer) check() error {
	if c.ID == "" {
		return errors.New("it is no customer, it has no id: see the API's address")
	}
	return nil
}
