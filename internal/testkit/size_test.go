package testkit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheTagLongDecidesWhatATestTries(t *testing.T) {
	t.Parallel()
	rows := map[string]int{"one": 1, "two": 2, "three": 3}
	size, first, named := 2, []int{1, 2}, map[string]int{"two": 2}
	if long {
		size, first, named = 3, []int{1, 2, 3}, rows
	}
	if got := Size(2, 3); got != size {
		t.Errorf("Size = %d, want %d", got, size)
	}
	if diff := cmp.Diff(first, First(2, []int{1, 2, 3})); diff != "" {
		t.Error("First (-want +got):\n" + diff)
	}
	if diff := cmp.Diff(named, Named(rows, "two")); diff != "" {
		t.Error("Named (-want +got):\n" + diff)
	}
	if len(rows) != 3 {
		t.Error("Named has changed the table")
	}
	if got := First(4, []int{1}); len(got) != 1 {
		t.Errorf("First of a shorter table = %v", got)
	}
}

func TestANameThatATableLacksPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a test would try nothing, and pass")
		}
	}()
	Named(map[string]int{"one": 1}, "eleven")
}
