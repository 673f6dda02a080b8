package asaas_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/drift"
)

// essentials is what an event of each family is nothing without: what parks it
// where it is null or absent. Everything else is handled.
var essentials = map[asaas.EventType][]string{
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

// Each field of each family in turn is null, and is absent.
func TestOnlyWhatAnEventIsNothingWithoutParksItWhereItIsNullOrAbsent(t *testing.T) {
	t.Parallel()
	families := everyFamily(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(essentials)), slices.Sorted(maps.Keys(families))); diff != "" {
		t.Fatalf("families (-here +in the spec):\n%s", diff)
	}
	method := handlers()
	for eventType, body := range families {
		delete(body, "balanceData")
		t.Run(string(eventType), func(t *testing.T) {
			t.Parallel()
			always := required(t, eventType)
			for _, s := range spots("", "", body, nil)[1:] {
				path := strings.TrimPrefix(s.path, ".")
				if path == "event" || strings.HasSuffix(path, "[]") {
					continue // an event of no type, and elements of lists
				}
				for way, change := range map[drift.Kind]func(){
					drift.UnexpectedNull:  func() { s.put(nil) },
					drift.MissingRequired: s.remove,
				} {
					change()
					checkLack(t, method[eventType], body, path, way, slices.Contains(essentials[eventType], path), always[path])
					s.put(s.old)
				}
			}
		})
	}
}

// checkLack checks what becomes of an event that lacks something.
func checkLack(t *testing.T, method string, body map[string]any, path string, way drift.Kind, parks, always bool) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	handled := 0
	d := asaas.NewDispatcher()
	handle(d, method, func(any) { handled++ })
	err = d.Dispatch(t.Context(), nil, asaas.Identify(text))
	switch {
	case parks && (err == nil || handled != 0 || !strings.Contains(err.Error(), path)):
		t.Errorf("%s, %s: handled %d times, %v, want an error with the path", path, way, handled, err)
	case !parks && (err != nil || handled != 1):
		t.Errorf("%s, %s: handled %d times, %v, want once", path, way, handled, err)
	case (parks || always) != hasFinding(d.Drift(), way, path):
		t.Errorf("%s, %s: parked=%t, always sent=%t, and the drift is %v", path, way, parks, always, d.Drift())
	}
}

// required are the paths of the fields that events of a type always have. They
// are those whose tag says that they are written always; a list has no path here
// below its own.
func required(t *testing.T, eventType asaas.EventType) map[string]bool {
	t.Helper()
	e, err := asaas.Parse([]byte(`{"event":"` + string(eventType) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var zero map[string]any
	if err := json.Unmarshal(text, &zero); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, s := range spots("", "", zero, nil)[1:] {
		out[strings.TrimPrefix(s.path, ".")] = true
	}
	return out
}

func TestAnAmountOfZeroThatIsSentIsHandled(t *testing.T) {
	t.Parallel()
	method := handlers()
	for eventType, body := range everyFamily(t) {
		for _, s := range spots("", "", body, nil)[1:] {
			if s.name != "value" {
				continue
			}
			s.put(json.Number("0.00"))
			checkLack(t, method[eventType], body, strings.TrimPrefix(s.path, "."), drift.UnexpectedNull, false, false)
			s.put(s.old)
		}
	}
}

// spot is a value in a body, and how to put another in its place.
type spot struct {
	path   string // as in a finding
	name   string // of the field
	old    any
	put    func(any)
	remove func() // nil for an element of a list
}

func spots(path, name string, v any, put func(any)) []spot {
	out := []spot{{path, name, v, put, nil}}
	switch v := v.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			below := spots(path+"."+field, field, v[field], func(to any) { v[field] = to })
			below[0].remove = func() { delete(v, field) }
			out = append(out, below...)
		}
	case []any:
		for i := range v {
			out = append(out, spots(path+"[]", name, v[i], func(to any) { v[i] = to })...)
		}
	}
	return out
}

// everyFamily returns a full body of an event type of each family.
func everyFamily(t *testing.T) map[asaas.EventType]map[string]any {
	t.Helper()
	out := make(map[asaas.EventType]map[string]any)
	seen := make(map[reflect.Type]bool)
	for _, eventType := range asaastest.Types() {
		text := asaastest.Event(eventType)
		e, err := asaas.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if kind := reflect.TypeOf(e); !seen[kind] {
			seen[kind] = true
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.UseNumber()
			var body map[string]any
			if err := decoder.Decode(&body); err != nil {
				t.Fatal(err)
			}
			out[eventType] = body
		}
	}
	return out
}

// Each value of each family in turn becomes each other kind of JSON.
func TestEveryChangeOfEveryValueIsAbsorbedOrToldWithItsPath(t *testing.T) {
	t.Parallel()
	methods := handlers()
	kinds := []any{nil, "", "12.5", "text", json.Number("7"), json.Number("0.125"), true, map[string]any{}, map[string]any{"new": "x"}, []any{}, []any{nil}}
	for eventType, body := range everyFamily(t) {
		t.Run(string(eventType), func(t *testing.T) {
			t.Parallel()
			for _, s := range spots("", "", body, nil)[1:] {
				if s.path == ".event" {
					continue
				}
				for _, kind := range kinds {
					s.put(kind)
					checkChange(t, methods[eventType], strings.TrimPrefix(s.path, "."), s.name, body)
				}
				s.put(s.old)
			}
		})
	}
}

func checkChange(t *testing.T, method, path, name string, body map[string]any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	handled := 0
	d := asaas.NewDispatcher()
	handle(d, method, func(any) { handled++ })
	e := asaas.Identify(text)
	err = d.Dispatch(t.Context(), nil, e)
	switch {
	case e.ID == "" || e.Type != body["event"]:
		t.Errorf("%s: the event is named %q, %q", path, e.ID, e.Type)
	case err == nil && handled != 1:
		t.Errorf("%s: it is neither handled nor an error", path)
	case err != nil && handled != 0:
		t.Errorf("%s: it is an error and handled: %v", path, err)
	case err != nil && !strings.Contains(err.Error(), name):
		t.Errorf("%s: the error does not tell the path: %v", path, err)
	case err != nil && !told(d, path):
		t.Errorf("%s: %v, and the drift has only %v", path, err, d.Drift())
	}
}

// told tells whether there is a finding at a path, or in what is now below it.
func told(d *asaas.Dispatcher, path string) bool {
	for _, f := range d.Drift() {
		if strings.HasPrefix(f.Path, path) {
			return true
		}
	}
	return false
}
