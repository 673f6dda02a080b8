//go:build !long

package testkit

const long = false
