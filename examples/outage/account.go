package main

import (
	"fmt"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// account is the shop's account at Asaas. Its time is virtual.
type account struct {
	*asaastest.Fake
	paid []payment // in their order
	next time.Time // when somebody pays
}

// payment is a payment, as Asaas knows it or as the shop's ledger has it.
type payment struct {
	id     string
	amount asaas.Money
	day    string
}

// pace is the time from one payment to the next.
const pace = 100 * time.Minute

// open begins with the first payment, at a time to come.
func (a *account) open(first time.Time) {
	a.Advance(first.Sub(a.Now()))
	a.next = first
}

// until lets payments and their deliveries happen until a time.
func (a *account) until(end time.Time) {
	for ; !a.next.After(end); a.next = a.next.Add(pace) {
		a.Advance(a.next.Sub(a.Now()))
		a.pay()
	}
	a.Advance(end.Sub(a.Now()))
}

// pay makes a payment happen.
func (a *account) pay() {
	now, n := a.Now().In(asaas.Brasilia()), len(a.paid)+1
	p := payment{
		id:     fmt.Sprintf("pay_1_a1B2c3D4e5%04d", n),
		amount: asaas.Cents(int64(1990 + n%7*1310)),
		day:    now.Format(time.DateOnly),
	}
	a.paid = append(a.paid, p)
	a.Emit(asaastest.Event(asaas.EventPaymentReceived,
		asaastest.Set("dateCreated", now.Format(time.DateTime)),
		asaastest.Set("payment.id", p.id),
		asaastest.Set("payment.value", p.amount),
		asaastest.Set("payment.netValue", p.amount.Sub(asaas.Cents(199))),
		asaastest.Set("payment.paymentDate", p.day)))
	a.Settle()
}
