package testkit

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachRunHasOtherNumbersAndASeedTheSameAgain(t *testing.T) {
	drawn := func() (numbers []uint64) {
		Random(t, 3, func(r *rand.Rand) { numbers = append(numbers, r.Uint64()) })
		return numbers
	}
	if got := drawn(); len(got) != 3 || got[0] == got[1] {
		t.Errorf("three runs drew %v", got)
	}
	t.Setenv("IDEM_TEST_RUNS", "5")
	if got := drawn(); len(got) != 5 {
		t.Errorf("five runs drew %v", got)
	}
	t.Setenv("IDEM_TEST_SEED", "7")
	if diff := cmp.Diff(drawn(), drawn()); diff != "" || len(drawn()) != 1 {
		t.Errorf("one seed drew different numbers, or more than once:\n%s", diff)
	}
}
