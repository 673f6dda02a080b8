package idemnats

import (
	"testing"

	"github.com/nats-io/nats.go"
)

func FuzzAttributesArriveAsTheyWere(f *testing.F) {
	for _, s := range []string{"", " ", "evt_1&2", "100%", "é\r\n\"x\"", "%41", "\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := encode(s)
		for _, c := range []byte(encoded) {
			if c <= ' ' || c > '~' || c == '"' {
				t.Fatalf("%q is encoded as %q, which a header may not have", s, encoded)
			}
		}
		if got := decode(encoded); got != s {
			t.Errorf("%q is encoded as %q and decoded as %q", s, encoded, got)
		}
	})
}

func TestAttributesThatOthersWroteAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	h := nats.Header{"Ce-Id": {"100% sure"}, "ce-type": {"paid"}, "ce-empty": {}, "Nats-Msg-Id": {"x"}}
	m := message(h, []byte("body"))
	if m.ID != "100% sure" || m.Type != "paid" || string(m.Body) != "body" {
		t.Errorf("the message is %q", m)
	}
}
