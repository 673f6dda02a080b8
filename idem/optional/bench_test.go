package optional_test

import (
	"encoding/json"
	"testing"

	"github.com/paghooks/paghooks/idem/optional"
)

type part[S, N any] struct {
	Value N `json:"value,omitzero"`
	Type  S `json:"type,omitzero"`
}

// record is shaped like a payment: some twenty optional fields, most of them
// texts or null, and a few objects.
type record[S, B, N, P any] struct {
	Subscription S `json:"subscription,omitzero"`
	Checkout     S `json:"checkout,omitzero"`
	Link         S `json:"link,omitzero"`
	Description  S `json:"description,omitzero"`
	Pix          S `json:"pix,omitzero"`
	QrCode       S `json:"qrCode,omitzero"`
	Confirmed    S `json:"confirmed,omitzero"`
	Paid         S `json:"paid,omitzero"`
	PaidByClient S `json:"paidByClient,omitzero"`
	Credited     S `json:"credited,omitzero"`
	Estimated    S `json:"estimated,omitzero"`
	Reference    S `json:"reference,omitzero"`
	Receipt      S `json:"receipt,omitzero"`
	Slip         S `json:"slip,omitzero"`
	Viewed       S `json:"viewed,omitzero"`
	Late         B `json:"late,omitzero"`
	Original     N `json:"original,omitzero"`
	Interest     N `json:"interest,omitzero"`
	Fine         P `json:"fine,omitzero"`
	Discount     P `json:"discount,omitzero"`
}

const recordBody = `{"checkout":null,"link":null,"description":"Mensalidade de junho","pix":"b1f0a9d2-2f4c-4c38-8a52-6f7f0c7b3d9e",` +
	`"qrCode":"LOJAEXEMPLO00000000000008812345ASA","confirmed":"2026-08-08","paid":"2026-08-08","paidByClient":"2026-08-08",` +
	`"credited":"2026-08-08","estimated":"2026-08-08","reference":"pedido-4711","receipt":"https://example.com/comprovantes/5520118847712094",` +
	`"slip":null,"viewed":null,"late":true,"original":null,"interest":5,"fine":{"value":2,"type":"PERCENTAGE"},"discount":{"value":0,"type":"FIXED"}}`

type (
	valueRecord = record[optional.Value[string], optional.Value[bool], optional.Value[int64],
		optional.Value[part[optional.Value[string], optional.Value[int64]]]]
	pointerRecord = record[*string, *bool, *int64, *part[*string, *int64]]
)

// BenchmarkDecode compares a Value with the pointer that would stand in its
// place, which cannot tell null from absent.
func BenchmarkDecode(b *testing.B) {
	b.Run("values", decodes[valueRecord])
	b.Run("pointers", decodes[pointerRecord])
}

func decodes[T any](b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := json.Unmarshal([]byte(recordBody), new(T)); err != nil {
			b.Fatal(err)
		}
	}
}
