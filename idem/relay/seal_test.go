package relay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

// Relays and consumers are deployed one after the other, and messages wait in brokers.
func TestMessagesHaveTheFormThatEarlierVersionsRead(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 9, 30, 0, 123456789, time.FixedZone("-03", -3*60*60))
	for _, c := range []struct {
		event   idem.Event
		message string
	}{
		{
			idem.Event{
				Source: "notes", Scope: "b\xe7/x", ID: "e1", Type: "paid", Key: "<o1>",
				OccurredAt: time.UnixMicro(1700000000123456).UTC(), Payload: []byte("{\"a\":1}\n\x00\xff"),
			},
			"paghooks-relay-1 95005a1cc659a977ecaa0120eddb164e629cb3db0f52b678155803cc79ab1453\n" +
				`{"source":"notes","scope":"b%E7%2Fx","id":"e1","type":"paid","key":"\u003co1\u003e","occurred_at":1700000000123456,"relayed_at":"2026-11-23T12:30:00.123456789Z"}` +
				"\n{\"a\":1}\n\x00\xff",
		},
		{
			idem.Event{Source: "notes", ID: "e2", Payload: []byte{}},
			"paghooks-relay-1 5cfd9c74e2676d64ee1ebe467355f70639e462c03e3f81feeb9f8e8501a602a5\n" +
				`{"source":"notes","id":"e2","relayed_at":"2026-11-23T12:30:00.123456789Z"}` + "\n",
		},
	} {
		if diff := cmp.Diff(c.message, string(seal(c.event, at, fuzzSecret))); diff != "" {
			t.Errorf("the message of %s (-want +got):\n%s", c.event.ID, diff)
		}
		for _, body := range []string{c.message, "paghooks-relay: not signed\n" + c.message} { // as it was set aside before
			got, relayed, err := unseal([]byte(body), []string{fuzzSecret})
			if err != nil || !relayed.Equal(at) {
				t.Errorf("%s is unsealed as of %s, %v", c.event.ID, relayed, err)
			}
			if diff := cmp.Diff(c.event, got); diff != "" {
				t.Errorf("%s (-sealed +unsealed):\n%s", c.event.ID, diff)
			}
		}
	}
}
