package asaas

import (
	"crypto/rand"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/optional"
)

// syntheticEvent makes the body of an event about nothing that exists, with the fields that
// Asaas always sends. It is the package's own struct, so that every field is
// there that must be; that of a type named alike for one that it does not know.
func syntheticEvent(t EventType) []byte {
	now := time.Now().In(Brasilia())
	envelope := Envelope{ID: "evt_dry_run_" + rand.Text(), Event: t, DateCreated: DateTime(now.Format(time.DateTime))}
	create := newEvent[alike(t)]
	if create == nil {
		body, _ := json.Marshal(envelope)
		return body
	}
	e := create()
	*e.envelope() = envelope
	if p, ok := e.(*PaymentEvent); ok {
		p.Payment = syntheticPayment(t, Date(now.Format(time.DateOnly)))
	}
	nameNobody(e)
	fillEssentials(e)
	body, _ := json.Marshal(e) // structs that were decoded, and are tested all
	return body
}

// alike is the type itself, or else the known one that begins with the same
// words and most of the same letters; "" if none does.
func alike(t EventType) (best EventType) {
	if t = canonical(t); newEvent[t] != nil {
		return t
	}
	longest := strings.IndexByte(string(t), '_') // the first word, at least
	if longest < 0 {
		return ""
	}
	for name := range newEvent {
		n := commonPrefix(string(name), string(t))
		if n > longest || n == longest && best != "" && name < best {
			best, longest = name, n
		}
	}
	return best
}

func commonPrefix(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// dryRunCharge looks like the id of a charge, and is none.
const dryRunCharge = "pay_0_dryRunDryRun00"

// nobody is an id that fits a column of text as well as one of UUIDs.
const nobody = "00000000-0000-0000-0000-000000000000"

// nameNobody gives the event's entity an id, if it has none.
func nameNobody(e Event) {
	for _, field := range reflect.ValueOf(e).Elem().Fields() {
		if field.Kind() != reflect.Struct {
			continue
		}
		if id := field.FieldByName("ID"); id.IsValid() && id.Kind() == reflect.String && id.IsZero() {
			id.SetString(nobody)
		}
	}
}

// syntheticPayment is a charge without an order, in the state that the event
// type says.
func syntheticPayment(t EventType, today Date) Payment {
	status := PaymentStatus(strings.TrimPrefix(string(t), "PAYMENT_"))
	if !status.Known() {
		status = PaymentStatusPending
	}
	return Payment{
		Object: "payment", ID: dryRunCharge, Customer: "cus_dry_run",
		DateCreated: today, DueDate: today, OriginalDueDate: today,
		Value: oneReal, NetValue: optional.Of(oneReal), BillingType: BillingTypePix, Status: status,
		InvoiceURL: "https://invoice.example/dry_run", InvoiceNumber: "0",
	}
}
