//go:build !linux

package idemtest

func memory() string { return "" }
