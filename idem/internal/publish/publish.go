// Package publish holds the errors of publishers that package idem knows, and that
// package idem/broker, which imports idem, exports.
package publish

import "errors"

// Errors that are a message's own, and not the broker's.
var (
	ErrTooLarge = errors.New("the message is too large")
	ErrNoQueue  = errors.New("there is no such queue")
)

// OfMessage reports whether an error is the message's own: the broker may take others.
func OfMessage(err error) bool { return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNoQueue) }
