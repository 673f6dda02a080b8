package idem

import (
	"bytes"
)

// setAsideMark begins the payload of what [Relayed] sets aside, whatever the reason. No
// source is asked about such an event: it has no handler, and is not ignored.
const setAsideMark = "paghooks-relay: not signed\n"

// isSetAside tells whether an event is what setAside has stored.
func isSetAside(e Event) bool { return bytes.HasPrefix(e.Payload, []byte(setAsideMark)) }

func withoutSetAsideMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte(setAsideMark)) }
