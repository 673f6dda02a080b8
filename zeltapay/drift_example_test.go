package zeltapay_test

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/zeltapay"
)

// What Zelta Pay sends and this package does not know is told. The merchant's
// own metadata is not looked at.
func ExampleDispatcher_Drift() {
	events := zeltapay.NewDispatcher("whsec_…")
	for _, body := range []string{
		`{"eventId":"evt_1","type":"payment.refunded"}`,
		`{"eventId":"evt_2","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":"1500","fee":45},"metadata":{"order":7}}`,
	} {
		_ = events.Dispatch(context.Background(), nil, zeltapay.Identify([]byte(body)))
	}
	for _, f := range events.Drift() {
		fmt.Println(f.EventType, f.Path, f.Kind)
	}
	// Output:
	// payment.refunded  unknown_event
	// payment.success transaction.amount changed_type
	// payment.success transaction.fee unknown_field
}
