package idemtest

import (
	"testing"
	"time"
)

func TestLeakedConnectionDoesNotHangTheTest(t *testing.T) {
	t.Parallel()
	pool := Pool(t)
	leaked, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := closePool(pool, time.Millisecond); got != 1 {
		t.Errorf("%d connections leaked", got)
	}
	leaked.Release()
	if got := closePool(pool, time.Minute); got != 0 {
		t.Errorf("%d connections leaked after their release", got)
	}
}
