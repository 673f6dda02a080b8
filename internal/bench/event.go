package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

// charges is the number of charges that the events are about, in turn.
const charges = 10_000

// events are those of one run, by number. The run is part of all ids, so that
// runs against one receiver do not meet.
type events struct {
	run   string
	parts []string // of a body: between them are the id, the charge and the amount
}

const (
	gap         = "§"
	placeholder = "31415926535" // an amount, which cannot be a gap
)

func newEvents(run string) *events {
	body := asaastest.Event("PAYMENT_RECEIVED",
		asaastest.Set("id", gap),
		asaastest.Set("payment.id", gap),
		asaastest.Set("payment.value", json.RawMessage(placeholder)))
	return &events{run, strings.Split(strings.Replace(string(body), placeholder, gap, 1), gap)}
}

func (e *events) body(n int64) []byte {
	amount := cents(n)
	return fmt.Appendf(nil, "%sevt_%s&%d%s%s%s%d.%02d%s",
		e.parts[0], e.run, n, e.parts[1], e.charge(n), e.parts[2], amount/100, amount%100, e.parts[3])
}

// charge is the charge that an event is about.
func (e *events) charge(n int64) string {
	return fmt.Sprintf("%s%d", e.prefix(), n%charges)
}

func (e *events) prefix() string { return "pay_" + e.run + "_" }

// cents is the amount of an event: up to a million reais, and without order, so
// that sums tell which events they are of.
func cents(n int64) int64 {
	x := uint64(n) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return int64((x^x>>32)%1e8) + 1
}
