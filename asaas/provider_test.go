package asaas_test

import (
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/provider/providertest"
)

func TestAsaasKeepsThePromisesOfProviders(t *testing.T) {
	t.Parallel()
	event := func(eventType asaas.EventType, changes ...providertest.Change) []byte {
		if eventType == "BALANCE_VALUE_BLOCKED" { // the other types have both spellings
			changes = append(changes, providertest.Delete("balanceData"))
		}
		return asaastest.Event(eventType, changes...)
	}
	p := providertest.Of(asaas.NewDispatcher, asaas.Verify, asaas.Identify, asaas.Parse, asaastest.Types(), event, asaastest.Sparse, asaastest.Request)
	p.Secrets, p.Named, p.Essential = [2]string{token, oldToken}, named, essentials
	p.Personal = map[string][]string{
		"TRANSFER_DONE":                   {"transfer.bankAccount.ownerName", "transfer.bankAccount.cpfCnpj", "transfer.bankAccount.pixAddressKey", "transfer.account.name"},
		"MOBILE_PHONE_RECHARGE_CONFIRMED": {"mobilePhoneRecharge.phoneNumber"},
		"CHECKOUT_PAID":                   {"checkout.customerData.email", "checkout.customerData.address"},
	}
	p.Original = testdata(t, "pix_received_unasked")
	if len(p.Types) < 112 {
		t.Errorf("there are bodies of %d event types, of 112 that Asaas has", len(p.Types))
	}
	for _, c := range changes {
		p.Changes = append(p.Changes, providertest.Changed(c))
	}
	providertest.Run(t, p)
}

// named returns the id of the event, and that of the object beside the envelope, if it has one.
func named(body map[string]any) (id, key string) {
	for name, value := range body {
		if object, ok := value.(map[string]any); ok && name != "account" && object["id"] != nil {
			key, _ = object["id"].(string)
		}
	}
	id, _ = body["id"].(string)
	return id, key
}

// essentials is what an event of each family is nothing without: what parks it
// where it is null or absent. Everything else is handled.
var essentials = map[string][]string{
	"PAYMENT_CREATED":                                     {"payment", "payment.id", "payment.value", "payment.status"},
	"SUBSCRIPTION_CREATED":                                {"subscription", "subscription.id", "subscription.value", "subscription.status"},
	"INVOICE_CREATED":                                     {"invoice", "invoice.id", "invoice.value", "invoice.status"},
	"TRANSFER_CREATED":                                    {"transfer", "transfer.id", "transfer.value", "transfer.status"},
	"BILL_CREATED":                                        {"bill", "bill.id", "bill.value", "bill.status"},
	"RECEIVABLE_ANTICIPATION_SCHEDULED":                   {"anticipation", "anticipation.id", "anticipation.value", "anticipation.status"},
	"MOBILE_PHONE_RECHARGE_PENDING":                       {"mobilePhoneRecharge", "mobilePhoneRecharge.id", "mobilePhoneRecharge.value", "mobilePhoneRecharge.status"},
	"ACCOUNT_STATUS_BANK_ACCOUNT_INFO_APPROVED":           {"accountStatus", "accountStatus.id"},                         // the event type says the status
	"CHECKOUT_CREATED":                                    {"checkout", "checkout.id", "checkout.status"},                // its amount is that of its items
	"BALANCE_VALUE_BLOCKED":                               {"balance", "balance.value"},                                  // without balanceData, which is as good
	"INTERNAL_TRANSFER_CREDIT":                            {"internalTransferData", "internalTransferData.value"},        // it has no id and no status
	"ACCESS_TOKEN_CREATED":                                {"accessToken", "accessToken.id"},                             // the event type says the status
	"PIX_AUTOMATIC_RECURRING_AUTHORIZATION_CREATED":       {"authorization", "authorization.id", "authorization.status"}, // its amount is null where it varies
	"PIX_AUTOMATIC_RECURRING_PAYMENT_INSTRUCTION_CREATED": {"paymentInstruction", "paymentInstruction.id", "paymentInstruction.status"},
	"PIX_AUTOMATIC_RECURRING_ELIGIBILITY_UPDATED":         {"eligibility", "eligibility.status"},
}

// change is a [providertest.Changed].
type change struct{ Reason, Old, New, State, Error, Found string }

// changes are what Asaas might do to its payments one day.
var changes = []change{
	{"nothing", "", "", "done", "", ""},
	{"an unknown event type", `"PAYMENT_RECEIVED"`, `"PAYMENT_NEWS"`, "unhandled", "", "unknown_event "},
	{"an unknown family key", `"payment":{"object"`, `"charge":{"object"`, "parked", "payment is missing", "unknown_field charge, missing_required payment"},
	{"the family is null", `"payment":{`, `"payment":null,"old":{`, "parked", "payment is null", "unknown_field old, unexpected_null payment"},
	{"an unknown field", `"payment":{`, `"payment":{"tax":{"value":1.5},`, "done", "", "unknown_field payment.tax"},
	{"an unknown field of the envelope", `"event"`, `"signature":"x","event"`, "done", "", "unknown_field signature"},
	{"an unknown field deep inside", `"refunds":null`, `"refunds":[{"fee":1}]`, "done", "", "unknown_field payment.refunds[].fee"},
	{"an unknown enum value", `"billingType":"PIX"`, `"billingType":"DREX"`, "done", "", "unknown_value payment.billingType"},
	{"an unknown value deep inside", `"value":0.00,"type":"FIXED"}`, `"value":0.00,"type":"POINTS"}`, "done", "", "unknown_value payment.fine.type"},
	{"null for an amount", `"value":29.90`, `"value":null`, "parked", "payment.value is null", "unexpected_null payment.value"},
	{"null for an enum", `"status":"RECEIVED"`, `"status": null`, "parked", "payment.status is null", "unexpected_null payment.status"},
	{"null for an id", `"id":"pay_`, `"id":null,"x":"pay_`, "parked", "payment.id is null", "unexpected_null payment.id, unknown_field payment.x"},
	{"no amount", `"value":29.90,`, ``, "parked", "payment.value is missing", "missing_required payment.value"},
	{"an amount of 0 that is sent", `"status":"RECEIVED"`, `"status":"RECEIVED","originalValue":0`, "done", "", ""},
	{"null for a flag", `"anticipable":false`, `"anticipable":null`, "done", "", "unexpected_null payment.anticipable"},
	{"no flag", `"anticipable":false,`, ``, "done", "", "missing_required payment.anticipable"},
	{"null for a net amount", `"netValue":28.91`, `"netValue":null`, "done", "", "unexpected_null payment.netValue"},
	{"no net amount", `"netValue":28.91,`, ``, "done", "", "missing_required payment.netValue"},
	{"null for a bool", `"deleted":false`, `"deleted":null`, "done", "", "unexpected_null payment.deleted"},
	{"null in a list", `"refunds":null`, `"refunds":[null]`, "done", "", "unexpected_null payment.refunds[]"},
	{"null, where null may be", `"refunds":null`, `"refunds":null,"chargeback":null`, "done", "", ""},
	{"an amount as a string", `"value":29.90`, `"value":"29.90"`, "done", "", "changed_type payment.value"},
	{"a whole number as a string", `"dueDateLimitDays":0`, `"dueDateLimitDays":"0"`, "done", "", "changed_type payment.discount.dueDateLimitDays"},
	{"an amount as a word", `"value":29.90`, `"value":"a lot"`, "parked", "payment.value", "changed_type payment.value"},
	{"an amount as an object", `"value":29.90`, `"value":{"cents":2990}`, "parked", "payment.value", "changed_type payment.value"},
	{"an amount with too many digits", `"value":29.90`, `"value":29.900000000000000000001`, "parked", "payment.value", "changed_type payment.value"},
	{"an id as a number", `"id":"pay_1_x3k9F0q2m7T1v5"`, `"id":123`, "parked", "payment.id", "changed_type payment.id"},
	{"a date as a number", `"dueDate":"2026-08-08"`, `"dueDate":1786147200`, "parked", "payment.dueDate", "changed_type payment.dueDate"},
	{"a bool as a string", `"deleted":false`, `"deleted":"false"`, "parked", "payment.deleted", "changed_type payment.deleted"},
	{"a string as an object", `"description":"`, `"description":{"pt":"x"},"x":"`, "parked", "payment.description", "changed_type payment.description, unknown_field payment.x"},
	{"an object as a list", `"fine":{"value":0.00,"type":"FIXED"}`, `"fine":[{"value":0.00}]`, "parked", "payment.fine", "changed_type payment.fine"},
	{"a list as an object", `"refunds":null`, `"refunds":{"data":[]}`, "parked", "payment.refunds", "changed_type payment.refunds"},
	{"a changed type in a list", `"refunds":null`, `"refunds":[{"value":1},{"value":true}]`, "parked", "payment.refunds.value", "changed_type payment.refunds[].value"},
	{"the family as a list", `"payment":{"object"`, `"payment":[],"old":{"object"`, "parked", "payment", "unknown_field old, changed_type payment"},
	{"no JSON any more", `{"id":"evt`, `{"id:"evt`, "unhandled", "", "unreadable "},
}
