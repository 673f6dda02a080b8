package testkit

import (
	"fmt"
	"maps"
	"slices"
)

// Size returns few, or many with the build tag long: a test has one body and two sizes.
func Size(few, many int) int {
	if long {
		return many
	}
	return few
}

// First returns the first n rows of a test's table, or all with the build tag long.
func First[R any](n int, rows []R) []R {
	return rows[:min(Size(n, len(rows)), len(rows))]
}

// Named returns the named rows of a test's table, or all with the build tag long. It panics if there is no row
// of a name.
func Named[R any](rows map[string]R, names ...string) map[string]R {
	for _, name := range names {
		if _, ok := rows[name]; !ok {
			panic(fmt.Sprintf("testkit: no row of the table has the name %q", name))
		}
	}
	few := maps.Clone(rows)
	maps.DeleteFunc(few, func(name string, _ R) bool { return !long && !slices.Contains(names, name) })
	return few
}
