package asaastest

import (
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// PixAutomatic returns the life of the first charge of a subscription made by API whose payer chooses
// Pix Automático, which Asaas offers by default: see [asaas.PixAutomaticAuthorizationModeOptional].
// The events are in the order that Asaas's page shows: the authorization is created, the charge is
// created, the charge is received, the authorization is active. So an application with subscriptions
// gets events of two families, and has to take the charge for its own in any order of them. The charge is
// of R$ 100.00, its ExternalReference is reference, null for "", and its PixQrCodeID is the
// authorization's conciliation identifier once it is received.
//
// See https://docs.asaas.com/docs/automatic-pix-offer-on-api-subscriptions.
func PixAutomatic(reference string) Life {
	c := NewSubscription(asaas.BillingTypePix, asaas.Cents(10000), 1)[0]
	if reference != "" {
		c.Payment.ExternalReference = value.Of(reference)
	}
	offered := c.Now
	c.Now = c.Now.Add(time.Second)
	created, received := c.Created(), c.Received()
	c.Now = c.Now.Add(time.Second)
	authorization := func(eventType asaas.EventType, status asaas.PixAutomaticAuthorizationStatus, at time.Time) []byte {
		return Event(eventType, Set("dateCreated", at.Format(time.DateTime)), Set("authorization.status", status),
			Set("authorization.immediateQrCode.conciliationIdentifier", c.Payment.PixQrCodeID.Or("")))
	}
	return Life{
		Name: "a subscription, by Pix Automático", Charge: c, Status: c.Payment.Status, Paid: c.Payment.Value, Received: c.Payment.Value,
		Bodies: [][]byte{
			authorization(asaas.EventPixAutomaticRecurringAuthorizationCreated, asaas.PixAutomaticAuthorizationStatusCreated, offered),
			created,
			received,
			authorization(asaas.EventPixAutomaticRecurringAuthorizationActivated, asaas.PixAutomaticAuthorizationStatusActive, c.Now),
		},
	}
}
