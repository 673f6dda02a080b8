//go:build long && !race

package promises_test

import "testing"

// To look longer: IDEM_TEST_RUNS=5000 go test -tags=long -run TestInboxIsItsModelInManyHistories ./idem/promises.
func TestInboxIsItsModelInManyHistories(t *testing.T) {
	tryHistories(t, 60, 60)
}
