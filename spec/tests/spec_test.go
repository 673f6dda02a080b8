// Package tests has the specs read by others than gen: a parser of OpenAPI
// and a validator of JSON Schema that know nothing of this project's extensions.
package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/speakeasy-api/openapi/openapi"
	"go.yaml.in/yaml/v3"

	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// body is an event of a type, as it may be delivered.
type body struct {
	webhook string
	json    []byte
}

// specs are the specs, with bodies of all their event types.
var specs = []struct {
	path   string
	bodies func() []body
}{
	{"../asaas.yaml", func() (out []body) {
		for _, t := range asaastest.Types() {
			out = append(out, body{string(t), asaastest.Event(t)}, body{string(t), asaastest.Sparse(t)})
		}
		return out
	}},
	{"../zeltapay.yaml", func() (out []body) {
		for _, layout := range []zeltapaytest.Layout{zeltapaytest.Flat, zeltapaytest.Nested} {
			for _, t := range zeltapaytest.Types() {
				out = append(out, body{string(t), layout.Event(t)}, body{string(t), layout.Sparse(t)})
			}
		}
		return out
	}},
}

// read has another parser than gen's read and validate a spec.
func read(t *testing.T, path string) *openapi.OpenAPI {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	api, mistakes, err := openapi.Unmarshal(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes {
		t.Errorf("%s: %v", path, m)
	}
	return api
}

func TestTheSpecsHaveWhatClientsAreMadeOf(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"../asaas.yaml", "../zeltapay.yaml"} {
		api := read(t, path)
		if license := api.GetInfo().GetLicense(); license.GetIdentifier() != "MIT" {
			t.Errorf("%s: its license is %q", path, license.GetIdentifier())
		}
		ids := make(map[string]string)
		check := func(where string, o *openapi.Operation) {
			id := o.GetOperationID()
			if other, twice := ids[id]; id == "" || twice {
				t.Errorf("%s: the operationId of %s is %q, that of %q too", path, where, id, other)
			}
			ids[id] = where
			needs := slices.Concat(o.GetSecurity(), api.GetSecurity())
			for _, need := range needs {
				for name := range need.Keys() {
					if !api.GetComponents().GetSecuritySchemes().Has(name) {
						t.Errorf("%s: %s needs %s, which is no security scheme", path, where, name)
					}
				}
			}
			if len(needs) == 0 {
				t.Errorf("%s: %s has no security", path, where)
			}
		}
		for name, item := range api.GetWebhooks().All() {
			check(name, item.GetObject().Post())
		}
		for at, item := range api.GetPaths().All() {
			for method, operation := range item.GetObject().All() {
				check(string(method)+" "+at, operation)
			}
		}
	}
}

// asJSON reads a spec as a validator of JSON Schema wants it.
func asJSON(t *testing.T, path string) any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var spec any
	if err := yaml.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// compiled are the schemas of the webhooks' bodies.
func compiled(t *testing.T, path string) map[string]*jsonschema.Schema {
	t.Helper()
	spec := asJSON(t, path)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spec.json", spec); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*jsonschema.Schema)
	for name := range spec.(map[string]any)["webhooks"].(map[string]any) {
		s, err := c.Compile(fmt.Sprintf("spec.json#/webhooks/%s/post/requestBody/content/application~1json/schema", name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = s
	}
	return out
}

func TestABodyFitsItsOwnWebhookAndNoOther(t *testing.T) {
	t.Parallel()
	for _, spec := range specs {
		schemas := compiled(t, spec.path)
		for _, b := range spec.bodies() {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.json))
			if err != nil {
				t.Fatal(err)
			}
			for name, schema := range schemas {
				switch err := schema.Validate(v); {
				case name == b.webhook && err != nil:
					t.Errorf("%s does not fit its webhook: %v", b.webhook, err)
				case name != b.webhook && err == nil:
					t.Errorf("%s fits the webhook %s", b.webhook, name)
				}
			}
		}
	}
}

func TestAnEnumTakesValuesThatAreNewer(t *testing.T) {
	t.Parallel()
	schemas := compiled(t, "../asaas.yaml")
	for why, test := range map[string]struct {
		change asaastest.Change
		fits   bool
	}{
		"a new status":      {asaastest.Set("payment.status", "NEWER"), true},
		"a new card":        {asaastest.Set("payment.creditCard.creditCardBrand", "NEWER"), true},
		"a number":          {asaastest.Set("payment.status", json.RawMessage("7")), false},
		"an amount as text": {asaastest.Set("payment.value", json.RawMessage(`"7"`)), false},
		"another name":      {asaastest.Set("event", "PAYMENT_RECEIVED"), false},
	} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asaastest.Event("PAYMENT_CREATED", test.change)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas["PAYMENT_CREATED"].Validate(v); (err == nil) != test.fits {
			t.Errorf("%s: fits=%t, %v", why, err == nil, err)
		}
	}
	old := strings.Replace(string(asaastest.Event("MOBILE_PHONE_RECHARGE_PENDING")), `"MOBILE_PHONE_RECHARGE_PENDING"`, `"PHONE_RECHARGE_PENDING"`, 1)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(old))
	if err != nil || schemas["MOBILE_PHONE_RECHARGE_PENDING"].Validate(v) != nil {
		t.Errorf("a recharge does not come by its other name: %v", err)
	}
}

// A property that is not required may be null, for the decoder and so for the spec,
// unless it is sent to the provider.
func TestTheSpecTakesNullWhereTheDecoderDoes(t *testing.T) {
	t.Parallel()
	sent := []string{"WebhookCreate", "WebhookUpdate", "WithdrawalAnswer", "PaymentCreate", "SplitCreate"}
	for _, path := range []string{"../asaas.yaml", "../zeltapay.yaml"} {
		spec := asJSON(t, path)
		c := jsonschema.NewCompiler()
		if err := c.AddResource("spec.json", spec); err != nil {
			t.Fatal(err)
		}
		for name, schema := range spec.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
			properties, _ := schema.(map[string]any)["properties"].(map[string]any)
			required, _ := schema.(map[string]any)["required"].([]any)
			for property := range properties {
				takesNull := c.MustCompile(fmt.Sprintf("spec.json#/components/schemas/%s/properties/%s", name, property)).Validate(nil) == nil
				if !takesNull && !slices.Contains(required, any(property)) && !slices.Contains(sent, name) {
					t.Errorf("%s: %s.%s is not required, and yet never null", path, name, property)
				}
			}
		}
	}
}

func TestAQuestionAboutAWithdrawalFitsItsWebhookAndNoEvent(t *testing.T) {
	t.Parallel()
	schemas := compiled(t, "../asaas.yaml")
	for body, fits := range map[string]bool{
		`{"type":"BILL","transfer":null,"bill":{"id":"623471","status":"PENDING","value":20,"bankId":null,"bank":{"code":"237"}}}`: true,
		`{"type":"PIX_QR_CODE","pixQrCode":{"id":"aa10","value":2,"qrCode":{"payer":null},"externalAccount":{"name":"Ana"}}}`:      true,
		`{"type":"PAYMENT_SPLIT","paymentSplit":{"whatever":true}}`:                                                                true,
		`{"type":"A_NEWER_KIND"}`:                                      true,
		`{"type":"BILL","bill":{"id":"623471","status":"PENDING"}}`:    false,
		`{"bill":{"id":"623471","status":"PENDING","value":20}}`:       false,
		`{"type":"PIX_QR_CODE","pixQrCode":{"id":"aa10","value":"2"}}`: false,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, schema := range schemas {
			if err := schema.Validate(v); (err == nil) != (fits && name == "withdrawalValidation") {
				t.Errorf("%s and %s: fits=%t, %v", body, name, err == nil, err)
			}
		}
	}
}
