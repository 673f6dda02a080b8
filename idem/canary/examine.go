package canary

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Examine reports whether the canary runs, and has not failed twice in a row. See
// package health.
func (c *Canary) Examine(context.Context, idem.Limits) []idem.Check {
	check := idem.Check{Source: c.Name, Name: "canary"}
	last, since := c.Last(), c.made
	if last.At.After(since) {
		since = last.At
	}
	switch {
	case last.Failing():
		check.Says, check.Cause = last.Err.Error(), last.Err
		if h, ok := errors.AsType[*hidden](last.Err); ok {
			check.Says = fmt.Sprintf("canary: %s: %s: see the error in this application's log", c.Name, h.says)
		}
		return []idem.Check{check}
	case time.Since(since) > 3*c.Every+c.Timeout:
		check.Says = "it does not run: give it to idem.Serve"
		return []idem.Check{check}
	case last.At.IsZero():
		check.Says = "it has not been delivered yet"
	case last.Err != nil:
		check.Says = "it failed once, and is tried again"
	default:
		check.Says = "it was handled"
	}
	check.Healthy = true
	return []idem.Check{check}
}
