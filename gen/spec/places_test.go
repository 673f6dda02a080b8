package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// How a value is read follows from its schema: optional, a text, or a number too.
func TestPlacesSayHowAValueIsRead(t *testing.T) {
	t.Parallel()
	s, err := Parse("shop.yaml", []byte(`openapi: 3.1.0
info: {title: A shop, version: "1"}
x-provider: {event: {type: kind}, verify: [{scheme: none}]}
webhooks:
  PAID:
    post: {requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/OrderEvent"}}}}}
components:
  schemas:
    OrderEvent:
      type: object
      required: [number, order]
      properties:
        kind: {type: string}
        number: {type: integer}
        order:
          type: object
          required: [id]
          properties: {id: {type: string}, code: {type: string}, bill: {type: [string, "null"], format: text}}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Places(Paths{"number", "order.id", "order.code", "order.bill", "nowhere.id"})
	want := []string{"number#", "order.id", "order.code?", "order.bill?#", "nowhere.id#"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
