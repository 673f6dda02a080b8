package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Random calls test n times, or as often as IDEM_TEST_RUNS says, with random numbers of another seed each time. After
// a failure it prints the seed, and ends: with that seed in IDEM_TEST_SEED, it calls test once, with the same numbers.
func Random(t *testing.T, n int, test func(*rand.Rand)) {
	t.Helper()
	if runs := os.Getenv("IDEM_TEST_RUNS"); runs != "" {
		n = int(number(t, "IDEM_TEST_RUNS", runs))
	}
	if seed := os.Getenv("IDEM_TEST_SEED"); seed != "" {
		run(t, number(t, "IDEM_TEST_SEED", seed), test)
		return
	}
	for range n {
		if run(t, rand.Uint64(), test); t.Failed() {
			return
		}
	}
}

func number(t *testing.T, name, text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is no number: %v", name, err)
	}
	return n
}

func run(t *testing.T, seed uint64, test func(*rand.Rand)) {
	ended := false
	defer func() {
		if t.Failed() || !ended { // by t.Fatal, or by a panic
			t.Logf("to see it again: IDEM_TEST_SEED=%d go test -run '^%s$'", seed, t.Name())
		}
	}()
	test(rand.New(rand.NewPCG(seed, 0)))
	ended = true
}

// Pick returns one of values, the first ones more often than the last: what happens to few entities meets more often
// than what happens to many.
func Pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(1+r.IntN(len(values)))] }
