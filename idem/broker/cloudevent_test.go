package broker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/broker"
)

func TestCloudEventHasWhatTheStandardAsksFor(t *testing.T) {
	t.Parallel()
	m := broker.Message{Source: "shop", ID: "1", Type: "order.paid", Key: "o1", Time: time.Date(2026, 11, 22, 10, 0, 0, 5000, time.FixedZone("BRT", -3*3600))}
	want := map[string]string{
		"specversion": "1.0", "id": "1", "source": "shop", "type": "order.paid", "subject": "o1", "time": "2026-11-22T13:00:00.000005Z",
	}
	if diff := cmp.Diff(want, m.CloudEvent()); diff != "" {
		t.Error("attributes (-want +got):\n" + diff)
	}
	m.Key, m.Time = "", time.Time{}
	for _, name := range []string{"subject", "time"} {
		if value, ok := m.CloudEvent()[name]; ok {
			t.Errorf("%s is %q, want none: it must not be empty", name, value)
		}
	}
}
