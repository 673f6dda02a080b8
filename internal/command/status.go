package command

import (
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/internal/lang"
)

// The exit statuses of every command.
const (
	Done        = 0
	Failed      = 1
	Misused     = 2
	Nothing     = 3
	Attention   = 4
	Interrupted = 130 // 128 and the signal's number, which others than Ctrl-C have, too
)

// Statuses are the exit statuses, as help and documents have them.
var Statuses = []struct {
	Status  int
	Meaning lang.Text
}{
	{Done, "done"},
	{Failed, "not done, or not all of it: stderr says why, and what was changed"},
	{Misused, "used in a wrong way: nothing was done"},
	{Nothing, "nothing matched: nothing was done"},
	{Attention, "done, and what was found needs somebody"},
	{Interrupted, "ended by Ctrl-C before it was done; 143 by SIGTERM, 129 by SIGHUP"},
}

// ended is an error that ends a command with a status. Its text is printed unless it was said
// already.
type ended struct {
	error
	status int
	said   bool
}

func (e ended) Unwrap() error { return e.error }

// Error returns an error that ends the command with a status.
func Error(status int, err error) error { return ended{err, status, false} }

// Usage returns an error of the command line.
func Usage(format string, args ...any) error {
	return ended{fmt.Errorf(format, args...), Misused, false}
}

// Said returns an error that ends the command with a status, after all was
// printed.
func Said(status int) error {
	return ended{errors.New("what is wrong is said already"), status, true}
}
