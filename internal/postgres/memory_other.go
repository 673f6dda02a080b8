//go:build !linux

package postgres

func memory() string { return "" }
