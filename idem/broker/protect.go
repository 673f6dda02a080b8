package broker

import "github.com/paghooks/paghooks/idem/internal/pgtx"

// Protect calls f, and returns its error. A panic is an error with its stack, also one
// of a method of the error that f returns. A module for a broker calls in it any function that
// the application may have written, a logger or a hook of a client for example: in a
// goroutine of the module's, a panic would end the program.
func Protect(f func() error) error { return pgtx.Protect(f) }
