package pgproxy

import (
	"bytes"
	"encoding/binary"
)

// owed holds the answers that Postgres still owes: the kinds of messages that it was
// sent, in their order.
type owed struct {
	kinds  []byte
	failed bool // Postgres skips all messages, until Sync
	copies byte // the kind of message that began COPY FROM STDIN
}

// answeredBy says which answer is the last one to a message. Query, Sync and
// FunctionCall are answered when Postgres is ready for the next query.
var answeredBy = map[byte]string{
	'P': "1", 'B': "2", 'C': "3", 'D': "Tn", 'E': "CIsG", 'S': "Z", 'Q': "ZG", 'F': "Z",
	0: "ZR", 'p': "ZR",
}

func (o *owed) sent(kind byte) {
	switch kind {
	case 'c', 'f': // the end of COPY: answered like the message that began it, if no error has ended it before
		if o.copies == 0 {
			return
		}
		kind = o.copies
	case 'S':
		o.failed = false
	}
	if answeredBy[kind] != "" && !o.failed {
		o.kinds = append(o.kinds, kind)
	}
}

func (o *owed) received(m message) {
	if m.kind == 'Z' {
		o.failed, o.copies = false, 0
	}
	switch {
	case m.kind == 'E':
		o.fail()
	case len(o.kinds) == 0 || m.kind == 'R' && !asks(m):
	case bytes.IndexByte([]byte(answeredBy[o.kinds[0]]), m.kind) >= 0:
		if m.kind == 'G' {
			o.copies = o.kinds[0]
		}
		o.kinds = o.kinds[1:]
	}
}

// fail drops the messages that Postgres skips after an error: all until the next Sync.
func (o *owed) fail() {
	o.copies = 0
	for i, kind := range o.kinds {
		if answeredBy[kind][0] == 'Z' {
			o.kinds = o.kinds[i:]
			return
		}
	}
	o.kinds, o.failed = nil, true
}

// asks reports whether a message of the start-up wants something of the client,
// which its final SASL message (12) and its Ok (0) do not.
func asks(m message) bool {
	code := binary.BigEndian.Uint32(m.body)
	return code != 0 && code != 12
}

// flushed reports whether a message has Postgres send its answers.
func flushed(kind byte) bool { return answeredBy[kind] != "" && answeredBy[kind][0] == 'Z' }
