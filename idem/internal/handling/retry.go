package handling

import (
	"errors"
	"time"
)

// Final is the error of a handler: its event must not be tried again.
type Final struct{ Err error }

func (f *Final) Error() string { return f.Err.Error() }
func (f *Final) Unwrap() error { return f.Err }

// Later is the error of a handler: its event must not be tried again before At.
type Later struct {
	Err error
	At  time.Time
}

func (l *Later) Error() string { return l.Err.Error() }
func (l *Later) Unwrap() error { return l.Err }

// IsFinal reports whether a [Final] is in err.
func IsFinal(err error) bool {
	_, final := errors.AsType[*Final](err)
	return final
}

// RetryAt returns the time of the [Later] in err; zero if there is none.
func RetryAt(err error) time.Time {
	if later, ok := errors.AsType[*Later](err); ok {
		return later.At
	}
	return time.Time{}
}
