package pgtx

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Start calls f, which is the application's code, in a goroutine of its own, and sends
// its error. The caller need not wait for it. A panic is an error, and so is [ErrExited].
func Start(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() {
		err := ErrExited
		defer func() { result <- err }()
		err = Protect(f)
	}()
	return result
}

// Protect turns a panic of application code into an error with its stack. It also
// catches panics of the returned error's methods: Error, Unwrap, As and Is.
func Protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	err = f()
	probe(err)
	return err
}

// probe calls the methods of an error that application code has made, so that none
// panics later, where it is not caught.
func probe(err error) {
	if err != nil {
		_ = err.Error()
		_ = WorkFailed(err)
		_ = errors.Is(err, ErrTimedOut)
	}
}
