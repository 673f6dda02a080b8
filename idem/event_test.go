package idem_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

func TestAnEventPrintsItsNamesAndNeverItsBody(t *testing.T) {
	t.Parallel()
	const person = "Ana"
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	event := idem.Event{Source: "notes", Scope: "shop", ID: "e1\x1b", Type: "paid", Key: "o1", OccurredAt: at, Payload: []byte(person)}
	stored := idem.StoredEvent{Event: event, State: idem.StateParked, Attempts: 3, LastError: "no order of " + person, ReceivedAt: at}
	const names = `{Source:"notes" Scope:"shop" ID:"e1\x1b" Type:"paid" Key:"o1" OccurredAt:2026-11-02T03:04:05Z Payload:3 bytes}`
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, c := range []struct {
			why  string
			what any
			want string
		}{
			{"an event", event, names},
			{"its address", &event, names},
			{"a stored one", stored, "{" + names + " State:parked Attempts:3 Crashes:0 ReceivedAt:2026-11-02T03:04:05Z}"},
		} {
			if diff := cmp.Diff(c.want, fmt.Sprintf(verb, c.what)); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", c.why, verb, diff)
			}
		}
		for _, around := range []any{[]idem.Event{event}, map[string]idem.StoredEvent{"": stored}, struct{ E *idem.StoredEvent }{&stored}} {
			said := fmt.Sprintf(verb, around)
			for _, secret := range []string{person, fmt.Sprintf("%x", person), strings.Trim(fmt.Sprint([]byte(person)), "[]")} {
				if strings.Contains(said, secret) {
					t.Errorf("%s of %T: %s", verb, around, said)
				}
			}
		}
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("looked", "event", event, "stored", stored, "address", &stored)
	}
	if said := log.String(); strings.Contains(said, person) || strings.Count(said, "parked") != 4 || strings.Count(said, `notes`) != 6 {
		t.Error(said)
	}
}
