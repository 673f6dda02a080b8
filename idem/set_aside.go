package idem

import (
	"bytes"
	"context"
)

// setAsideMark begins the payload of what [Relayed] sets aside, whatever the reason. No
// source is asked about such an event: it has no handler, and is not ignored.
const setAsideMark = "paghooks-relay: not signed\n"

// isSetAside tells whether an event is what setAside has stored.
func isSetAside(e Event) bool { return bytes.HasPrefix(e.Payload, []byte(setAsideMark)) }

func withoutSetAsideMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte(setAsideMark)) }

// setAside stores a message that must not be processed (it is not signed, another
// source's or too old) as unhandled: people see it, and no handler does.
func (c *Common) setAside(ctx context.Context, body []byte, cause error) error {
	payload := append([]byte(setAsideMark), withoutSetAsideMark(body)...)
	e := Event{Source: c.source.Name(), ID: BodyID(payload), Payload: payload}
	_, err := c.receive(ctx, Delivery{Event: e}, storeTime, func(ctx context.Context, e Event) result {
		return c.keep(ctx, e, StateUnhandled, cause)
	})
	return err
}
