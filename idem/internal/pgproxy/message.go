package pgproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// message is one message as it travels. The first of a connection has no kind.
type message struct {
	kind byte
	raw  []byte // all of it
	body []byte // without kind and length
}

// longest is the largest length that Postgres takes.
const longest = 1 << 30

// flush asks Postgres for the answers that it would keep until the next Sync.
var flush = message{kind: 'H', raw: []byte{'H', 0, 0, 0, 4}}

func readMessage(r *bufio.Reader) (message, error) { return read(r, 1) }

func readStartup(r *bufio.Reader) (message, error) { return read(r, 0) }

// read reads a message with its length after so many bytes.
func read(r *bufio.Reader, kind int) (message, error) {
	header, err := r.Peek(kind + 4)
	if err != nil {
		return message{}, err
	}
	n := binary.BigEndian.Uint32(header[kind:])
	if n < 4 || n > longest {
		return message{}, fmt.Errorf("pgproxy: a message says that it is %d bytes long: is this the PostgreSQL protocol?", n)
	}
	m := message{raw: make([]byte, kind+int(n))}
	if kind == 1 {
		m.kind = header[0]
	}
	m.body = m.raw[kind+4:]
	_, err = io.ReadFull(r, m.raw)
	return m, err
}
