package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/internal/fixture"
)

// fixturesIn makes the fixtures of a spec.
func fixturesIn(t *testing.T, path string) *fixture.File {
	t.Helper()
	f, err := fixture.Read([]byte(rendered(t, path, "x")[fixturesName]))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryEventTypeHasFixtures(t *testing.T) {
	for _, path := range []string{"../spec/asaas.yaml", "../spec/zeltapay.yaml", "testdata/good/everything/spec.yaml"} {
		s, err := load(path)
		if err != nil {
			t.Fatal(err)
		}
		want := inOrder(s.doc.Webhooks, itemOrigin)
		if diff := cmp.Diff(want, fixturesIn(t, path).Types()); diff != "" {
			t.Errorf("%s (-webhooks +fixtures):\n%s", path, diff)
		}
	}
}

func TestAValueFitsTheEventTypeWhereItIsNamedAfterIt(t *testing.T) {
	t.Parallel()
	boolean := &openapi3.Schema{Type: &openapi3.Types{"boolean"}}
	enum := func(values ...any) *openapi3.Schema {
		return &openapi3.Schema{Type: &openapi3.Types{"string"}, Enum: values}
	}
	tests := []struct {
		eventType, path string
		schema          *openapi3.Schema
		want            any
		why             string
	}{
		{"PAYMENT_RECEIVED", "payment.status", enum("PENDING", "RECEIVED"), "RECEIVED", "the state of what the event is about"},
		{"PAYMENT_CREATED", "payment.status", enum("PENDING", "RECEIVED"), nil, "CREATED is no state"},
		{"PAYMENT_CHARGEBACK_REQUESTED", "payment.status", enum("REQUESTED", "CHARGEBACK_REQUESTED"), "CHARGEBACK_REQUESTED", "the longer one says more"},
		{"PAYMENT_CHARGEBACK_REQUESTED", "payment.chargeback.status", enum("REQUESTED"), "REQUESTED", "an object inside"},
		{"PAYMENT_SPLIT_CANCELLED", "payment.split.0.status", enum("CANCELLED"), "CANCELLED", "an element of an array"},
		{"PAYMENT_SPLIT_CANCELLED", "payment.refunds.0.status", enum("CANCELLED"), nil, "nothing was said about refunds"},
		{"TRANSFER_IN_BANK_PROCESSING", "transfer.status", enum("BANK_PROCESSING"), "BANK_PROCESSING", "a word between them"},
		{"SUBSCRIPTION_INACTIVATED", "subscription.status", enum("ACTIVE", "INACTIVE"), "INACTIVE", "the state that it leads to"},
		{"ACCOUNT_STATUS_DOCUMENT_REJECTED", "accountStatus.documentation", enum("REJECTED"), "REJECTED", "a property of another name than status"},
		{"ACCOUNT_STATUS_DOCUMENT_REJECTED", "accountStatus.general", enum("REJECTED"), nil, "the other properties beside it"},
		{"PAYMENT_DELETED", "payment.split.0.cancellationReason", enum("PAYMENT_DELETED"), "PAYMENT_DELETED", "the event as a reason"},
		{"PAYMENT_DELETED", "payment.deleted", boolean, true, "a boolean"},
		{"PAYMENT_DELETED", "payment.anticipated", boolean, nil, "another boolean"},
	}
	for _, test := range tests {
		got, ok := fitting(test.eventType, test.path, test.schema)
		if !ok {
			got = nil
		}
		if got != test.want {
			t.Errorf("%s (%s, %s): got %v, want %v", test.why, test.eventType, test.path, got, test.want)
		}
	}
}

func TestTextsAreWhatTheSpecSuggests(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, format, description, want, why string }{
		{"payment.object", "", `Always "payment".`, "payment", "what the description quotes"},
		{"link.id", "", `"pl_" and more.`, "pl_" + digits("link"), "its start"},
		{"payment.id", "", "", "pay_" + digits("payment"), "an id with a known prefix"},
		{"chargeback.payment", "", "The charge's id.", "pay_" + digits("payment"), "the same id elsewhere"},
		{"account.id", "", "", uuid("account"), "an id without one"},
		{"payment.installment", "", "The UUID of the plan.", uuid("installment"), "a UUID that is not named id"},
		{"payment.dueDate", "asaas-date", "", "2026-08-08", "a date"},
		{"x.startDate", "asaas-date", "The first day; delivered as dd/MM/yyyy.", "08/08/2026", "in the property's own spelling"},
		{"x.seen", "asaas-datetime", "In UTC.", "2026-08-08T23:45:13Z", "and in another one"},
		{"payment.invoiceUrl", "", "", "https://example.com/invoiceUrl", "a URL"},
		{"payment.externalReference", "", "", "external reference", "anything else says its name"},
	}
	for _, test := range tests {
		if got := stringFor(test.path, test.format, test.description); got != test.want {
			t.Errorf("%s: %s is %q, want %q", test.why, test.path, got, test.want)
		}
	}
}

func TestBodiesAreValid(t *testing.T) {
	for _, path := range []string{"../spec/asaas.yaml", "../spec/zeltapay.yaml", "testdata/good/everything/spec.yaml"} {
		s, err := load(path)
		if err != nil {
			t.Fatal(err)
		}
		files := fixturesIn(t, path).Families
		for _, family := range s.families() {
			event := openapi3.NewAllOfSchema(s.schemas()[envelopeSchema].Value, s.ownOf(family.Struct))
			for _, f := range files {
				if _, ok := f.Types.Get(family.Events[0].Type); !ok {
					continue
				}
				checkBody(t, family.Struct+" full "+f.Layout, event, f.Full)
				checkBody(t, family.Struct+" sparse "+f.Layout, event, f.Sparse)
			}
		}
	}
}

// ownOf is an event's schema without the envelope.
func (s *spec) ownOf(event string) *openapi3.Schema {
	own := *s.schemas()[event].Value
	own.AllOf = nil
	return &own
}

// checkBody checks a body without its nulls: the spec says of every property
// that is not required that it may be null.
func checkBody(t *testing.T, where string, schema *openapi3.Schema, body []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	dropNulls(v)
	if err := schema.VisitJSON(v, openapi3.MultiErrors()); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			if field == nil {
				delete(v, name)
			}
			dropNulls(field)
		}
	case []any:
		for _, element := range v {
			dropNulls(element)
		}
	}
}

func TestALayoutLeavesOutTheOther(t *testing.T) {
	f := fixturesIn(t, "../spec/zeltapay.yaml")
	for layout, absent := range map[string]string{"flat": "paymentLink", "nested": "paymentLinkId"} {
		body, err := f.Full(layout, "payment.success")
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		if _, ok := v[absent]; ok || len(v) < 5 {
			t.Errorf("the layout %s has %d properties, or %s", layout, len(v), absent)
		}
	}
}

func TestFullBodiesHaveEveryPropertyInTheOrderOfTheSpec(t *testing.T) {
	const path = "testdata/good/everything/spec.yaml"
	s, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := fixture.Decode(fixturesIn(t, path).Families[0].Full)
	if err != nil {
		t.Fatal(err)
	}
	order, _ := v.(fixture.Object).Get("order")
	var got []string
	for _, m := range order.(fixture.Object) {
		if m.Value == nil {
			t.Errorf("%s is null", m.Name)
		}
		got = append(got, m.Name)
	}
	if diff := cmp.Diff(inOrder(s.schemas()["Order"].Value.Properties, schemaOrigin), got); diff != "" {
		t.Errorf("properties (-spec +body):\n%s", diff)
	}
}

func TestSchemasThatHoldThemselvesEnd(t *testing.T) {
	t.Parallel()
	part := &openapi3.Schema{Type: &openapi3.Types{"object"}, Properties: openapi3.Schemas{
		"id": openapi3.NewSchemaRef("", openapi3.NewStringSchema()),
	}}
	part.Properties["parts"] = openapi3.NewSchemaRef("", openapi3.NewArraySchema())
	part.Properties["parts"].Value.Items = openapi3.NewSchemaRef(schemaPrefix+"Part", part)
	part.Properties["whole"] = openapi3.NewSchemaRef(schemaPrefix+"Part", part)
	got, err := fixture.Encode((&sampler{}).object("part", part))
	if want := fmt.Sprintf(`{"id":%q,"parts":[]}`, uuid("part")); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
