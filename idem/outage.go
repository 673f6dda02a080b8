package idem

import "time"

// dependent is a source that knows whether its handlers can do anything now: the thing that they
// all depend on, a broker, may be unavailable.
type dependent interface {
	// Outage returns since when that is unavailable, and its last error; a nil error if it
	// is available.
	Outage() (since time.Time, err error)
}

// outage returns since when the handlers can do nothing, and why; a nil error if they can.
func (c *Common) outage() (since time.Time, err error) {
	if d, ok := c.source.(dependent); ok {
		return d.Outage()
	}
	return time.Time{}, nil
}

// hasOutage reports whether the handlers can do nothing.
func (c *Common) hasOutage() bool {
	_, err := c.outage()
	return err != nil
}
