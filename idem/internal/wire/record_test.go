package wire_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// Each line is a record as a version has written it. A spool may hold it while the
// application is upgraded: lines are added, and never changed.
func TestRecordsOfEarlierVersionsAreRead(t *testing.T) {
	t.Parallel()
	want := store.Incoming{
		Event: store.Event{
			Source: "asaas", Scope: "shop/1", ID: "evt_1", Type: "PAYMENT_RECEIVED", Key: "pay_1",
			OccurredAt: time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC), Payload: []byte("{}"),
		},
		Trace: "00-a-b-01",
	}
	for version, line := range map[string]string{
		"v0.1.0": `{"source":"asaas","scope":"shop%2F1","id":"evt_1","type":"PAYMENT_RECEIVED","key":"pay_1",` +
			`"occurred_at":1795168801000000,"trace":"00-a-b-01","spooled_at":"2026-11-20T10:00:01.0000005Z","payload":"e30="}`,
	} {
		got, at, err := wire.DecodeRecord([]byte(line))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", version, err, diff)
		}
		if wantAt := time.Date(2026, 11, 20, 10, 0, 1, 500, time.UTC); !at.Equal(wantAt) {
			t.Errorf("%s: spooled at %s, want %s", version, at, wantAt)
		}
	}
}
