package relay

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

const fuzzSecret = "0123456789abcdef0123456789abcdef"

// strangers is a source whose events are given to Accept.
type strangers struct{ idem.Routes }

func (*strangers) Name() string { return "strangers" }

func (*strangers) Open(*http.Request) (idem.Event, error) { panic("nothing is delivered") }

// normalized is the event as a relay seals it; ok is false if none does.
func normalized(e idem.Event) (sealed idem.Event, ok bool) {
	r := idem.NewEndpoint(&strangers{})
	r.Logger = nil
	_, err := r.Receive(context.Background(), idem.Delivery{Event: e}, time.Minute, func(_ context.Context, e idem.Event) (idem.Outcome, error) {
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
	f.Add([]byte(setAsideMark))
	f.Fuzz(func(t *testing.T, body []byte) {
		if e, _, err := unseal(body, []string{fuzzSecret}); err == nil {
			t.Errorf("taken as %v", e)
		}
	})
}
