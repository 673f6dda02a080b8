// Package routers has an inbox under routers other than the standard library's, and in AWS
// Lambda. docs/recipes.md shows this code, and the tests run it.
package routers
