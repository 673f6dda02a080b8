//go:build long

package charges_test

import "testing"

func TestNoOrderOfRescopesEventsAndRunsBooksAChargeTwiceInAnyOfManyStories(t *testing.T) {
	t.Parallel()
	manyStories(t, 120)
}
