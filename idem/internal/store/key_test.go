package store

import (
	"strings"
	"testing"
)

// Events of different names must never share a row.
func FuzzRowKeyIsUnique(f *testing.F) {
	f.Add("", "evt_1", "shop", "evt_1")
	f.Add("a/b", "c", "a", "b/c")
	f.Add("a%2Fb", "c", "a/b", "c")
	f.Add("", "/", "/", "")
	f.Fuzz(func(t *testing.T, scopeA, idA, scopeB, idB string) {
		a := Event{Source: "asaas", Scope: scopeA, ID: idA}.RowKey()
		b := Event{Source: "asaas", Scope: scopeB, ID: idB}.RowKey()
		if same := scopeA == scopeB && idA == idB; same != (a == b) {
			t.Errorf("(%q, %q) and (%q, %q) have the keys %q and %q", scopeA, idA, scopeB, idB, a, b)
		}
		var e Event
		e.setRowKey(a)
		if e.Source != "asaas" || e.Scope != scopeA || e.ID != idA {
			t.Errorf("%q is read as (%q, %q, %q)", a, e.Source, e.Scope, e.ID)
		}
	})
}

// What names an event's row is read as the same event again, whatever is in it:
// the row may be another program's.
func FuzzRowKeyIsReadWithoutLoss(f *testing.F) {
	for _, key := range []string{"asaas//evt_1", "asaas/a%2Fb/evt/1", "asaas/%zz/1", "asaas", "//", "", "a/%/\x00\xff"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		var e, again Event
		e.setRowKey(key)
		if strings.Contains(e.Source, "/") {
			t.Errorf("the source of %q is %q", key, e.Source)
		}
		again.setRowKey(e.RowKey())
		if again.Source != e.Source || again.Scope != e.Scope || again.ID != e.ID {
			t.Errorf("%q is %+v, which is read again as %+v", key, e, again)
		}
	})
}

// Lanes must not mix entities: of two accounts, or with an event that has none.
func FuzzLaneIsOneEntitys(f *testing.F) {
	f.Add("", "pay_1", "1", "shop", "pay_1", "2")
	f.Add("a/b", "c", "1", "a", "b/c", "2")
	f.Add("", "evt_1", "1", "", "", "evt_1")
	f.Add("a", "/1", "1", "a%", "", "1")
	f.Add("", "", "%/1", "", "%%/1", "1")
	f.Fuzz(func(t *testing.T, scopeA, keyA, idA, scopeB, keyB, idB string) {
		a := Event{Source: "asaas", Scope: scopeA, Key: keyA, ID: idA}.Lane()
		b := Event{Source: "asaas", Scope: scopeB, Key: keyB, ID: idB}.Lane()
		same := scopeA == scopeB && keyA == keyB
		if keyA == "" {
			same = same && idA == idB
		}
		if same != (a == b) {
			t.Errorf("(%q, %q, %q) and (%q, %q, %q) have the lanes %q and %q", scopeA, keyA, idA, scopeB, keyB, idB, a, b)
		}
	})
}
