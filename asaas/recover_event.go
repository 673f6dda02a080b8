package asaas

import (
	"crypto/rand"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/optional"
)

// syntheticEvent makes the body of an event about nothing that exists, with what
// Asaas always sends; nil for a type that this package does not know. It is the
// package's own struct, so that every field is there that must be.
func syntheticEvent(t EventType) []byte {
	create := newEvent[official(t)]
	if create == nil {
		return nil
	}
	e, now := create(), time.Now().In(Brasilia())
	*e.envelope() = Envelope{ID: "evt_dry_run_" + rand.Text(), Event: t, DateCreated: DateTime(now.Format(time.DateTime))}
	if p, ok := e.(*PaymentEvent); ok {
		p.Payment = syntheticPayment(t, Date(now.Format(time.DateOnly)))
	}
	nameNobody(e)
	fillEssentials(e)
	body, _ := json.Marshal(e) // structs that were decoded, and are tested all
	return body
}

// nobody fits a column of text as well as one of UUIDs.
const nobody = "00000000-0000-0000-0000-000000000000"

// nameNobody gives what the event is about an id, if it has none.
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

// syntheticPayment is a charge that nobody asked for, in the state that the event
// type says.
func syntheticPayment(t EventType, today Date) Payment {
	status := PaymentStatus(strings.TrimPrefix(string(t), "PAYMENT_"))
	if !status.Known() {
		status = PaymentStatusPending
	}
	return Payment{
		Object: "payment", ID: "pay_dry_run", Customer: "cus_dry_run",
		DateCreated: today, DueDate: today, OriginalDueDate: today,
		Value: oneReal, NetValue: optional.Of(oneReal), BillingType: BillingTypePix, Status: status,
		InvoiceURL: "https://invoice.example/dry_run", InvoiceNumber: "0",
	}
}
