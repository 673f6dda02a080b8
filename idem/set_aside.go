package idem

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
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
	_, err := c.receive(ctx, e, time.Now(), storeTime, func(ctx context.Context, e Event) result {
		stored, err := c.insertKept(ctx, e, store.Unhandled, cause)
		switch {
		case err != nil:
			return result{outcome: Retrying, err: fmt.Errorf("storing a message that is set aside: %w", explain(err))}
		case stored:
			return result{outcome: Unhandled, err: cause}
		}
		return result{outcome: Duplicate}
	})
	return err
}
