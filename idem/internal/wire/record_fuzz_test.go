package wire_test

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// FuzzSpoolRecord: an event comes back from the disk as it was, and what is no
// event is an error.
func FuzzSpoolRecord(f *testing.F) {
	f.Add("", "evt_1", "PAYMENT_RECEIVED", "pay_1", int64(0), []byte(`{}`), []byte("null"))
	f.Add("a/b\xff%2F", "e\n", "", "", int64(1767323045678901), []byte{0, 0xff}, []byte(`{"source":"notes","id":"1","payload":"!"}`))
	f.Add("%", "<&>", "\u2028", "k", int64(-62135596800000001), []byte{}, []byte(`{"source":"notes","id":"1","scope":"%"}`))
	f.Fuzz(func(t *testing.T, scope, id, kind, key string, occurred int64, body, garbage []byte) {
		_, _, _ = wire.DecodeRecord(garbage)
		if id == "" || !utf8.ValidString(id) || !utf8.ValidString(kind) || !utf8.ValidString(key) {
			return // an event has an id, and its names are text: see normalize of package idem
		}
		e := store.Event{Source: "notes", Scope: scope, ID: id, Type: kind, Key: key, Payload: append([]byte{}, body...)}
		if occurred != 0 {
			e.OccurredAt = time.UnixMicro(occurred)
		}
		at := time.Unix(1_700_000_000, 0)
		want := store.Incoming{Event: e, Trace: "trace"}
		record, err := wire.EncodeRecord(want, at)
		if err != nil {
			t.Fatal(err)
		}
		got, gotAt, err := wire.DecodeRecord(record)
		if err != nil || !gotAt.Equal(at) {
			t.Errorf("at %s, %v", gotAt, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("the event (-kept +read):\n" + diff)
		}
	})
}
