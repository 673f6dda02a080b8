package relay

import (
	"context"
	"net/http"
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
		got, relayed, err := unseal([]byte(c.message), []string{fuzzSecret})
		if err != nil || !relayed.Equal(at) {
			t.Errorf("%s is unsealed as of %s, %v", c.event.ID, relayed, err)
		}
		if diff := cmp.Diff(c.event, got); diff != "" {
			t.Errorf("%s (-sealed +unsealed):\n%s", c.event.ID, diff)
		}
	}
}

const fuzzSecret = "0123456789abcdef0123456789abcdef"

// strangers is a source whose events are given to Accept.
type strangers struct{ idem.Routes }

func (*strangers) Name() string { return "strangers" }

func (*strangers) Open(*http.Request) (idem.Event, error) { panic("nothing is delivered") }

// normalized is the event as a relay seals it; ok is false if none does.
func normalized(e idem.Event) (sealed idem.Event, ok bool) {
	r := New(&strangers{}, nil, fuzzSecret)
	r.Logger = nil
	_, err := r.inside().Accept(context.Background(), e, time.Minute, func(_ context.Context, e idem.Event) (idem.Outcome, error) {
		sealed = e
		return idem.Published, nil
	})
	return sealed, err == nil
}

// Whatever an event has in it, its message brings it back as it was.
func FuzzSealedEventComesBack(f *testing.F) {
	f.Add("branch", "e1", "paid", "o1", int64(1_700_000_000), 5, []byte(`{"a":1}`))
	f.Add("", "\n", "<&>", "\u2028", int64(-62135596800), 0, []byte("\n\x00\xff"))
	f.Add("\xe7/\x00", "e", "", "", int64(0), 0, []byte{}) // a scope need not be text
	f.Add("", "a", "", "", int64(253402300799), 999_999_999, []byte{})
	f.Fuzz(func(t *testing.T, scope, id, eventType, key string, sec int64, nsec int, payload []byte) {
		at := time.Unix(sec, int64(nsec)).UTC()
		e, ok := normalized(idem.Event{Scope: scope, ID: id, Type: eventType, Key: key, OccurredAt: at, Payload: payload})
		if !ok {
			return
		}
		relayedAt := time.Now()
		body := seal(e, relayedAt, fuzzSecret)
		got, relayed, err := unseal(body, []string{fuzzSecret})
		if err != nil {
			t.Fatal(err)
		}
		if !relayed.Equal(relayedAt) {
			t.Errorf("relayed at %v, want %v", relayed, relayedAt)
		}
		e.OccurredAt = e.OccurredAt.Truncate(time.Microsecond) // as Postgres does
		if diff := cmp.Diff(e, got); diff != "" {
			t.Error("(-want +got):\n" + diff)
		}
		if len(payload) > 0 {
			body[len(body)-1] ^= 1
			if _, _, err := unseal(body, []string{fuzzSecret}); err == nil {
				t.Error("another body has the same signature")
			}
		}
	})
}

// Nothing that a stranger publishes is an event.
func FuzzForgedMessageIsNoEvent(f *testing.F) {
	f.Add([]byte("paghooks-relay-1 00\n{}\n"))
	f.Add([]byte("paghooks-relay-1 \n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if e, _, err := unseal(body, []string{fuzzSecret}); err == nil {
			t.Errorf("taken as %v", e)
		}
	})
}
