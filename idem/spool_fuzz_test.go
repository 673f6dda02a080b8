package idem_test

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
)

// FuzzSpoolRecord: an event comes back from the disk as it was, and what is no
// event is an error.
func FuzzSpoolRecord(f *testing.F) {
	f.Add("", "evt_1", "PAYMENT_RECEIVED", "pay_1", int64(0), []byte(`{}`), []byte("null"))
	f.Add("a/b\xff%2F", "e\n", "", "", int64(1767323045678901), []byte{0, 0xff}, []byte(`{"source":"notes","id":"1","payload":"!"}`))
	f.Add("%", "<&>", "\u2028", "k", int64(-62135596800000001), []byte{}, []byte(`{"source":"notes","id":"1","scope":"%"}`))
	f.Fuzz(func(t *testing.T, scope, id, kind, key string, occurred int64, body, garbage []byte) {
		_, _, _, _ = idem.ReadRecord(garbage)
		if id == "" || !utf8.ValidString(id) || !utf8.ValidString(kind) || !utf8.ValidString(key) {
			return // an event has an id, and its names are text: see normalize
		}
		e := idem.Event{Source: "notes", Scope: scope, ID: id, Type: kind, Key: key, Payload: append([]byte{}, body...)}
		if occurred != 0 {
			e.OccurredAt = time.UnixMicro(occurred)
		}
		at := time.Unix(1_700_000_000, 0)
		record, err := idem.Record(e, "trace", at)
		if err != nil {
			t.Fatal(err)
		}
		got, trace, gotAt, err := idem.ReadRecord(record)
		if err != nil || trace != "trace" || !gotAt.Equal(at) {
			t.Errorf("trace %q at %s, %v", trace, gotAt, err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Error("the event (-kept +read):\n" + diff)
		}
	})
}
