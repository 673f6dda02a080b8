package pgproxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// patience is the time that a fault waits for Postgres to answer or to hang up. One
// that takes longer waits for a lock, and the fault does not count.
const patience = 30 * time.Second

// conn is one connection through the proxy. One goroutine forwards the client's
// messages and has the faults happen, one forwards the answers.
type conn struct {
	proxy      *Proxy
	client     net.Conn
	server     net.Conn
	statements statements
	backend    uint32 // the server process

	mu      sync.Mutex
	changed sync.Cond // owed or ended
	owed    owed
	last    byte // the kind of message that was sent last
	ended   bool // Postgres has hung up
	stuck   bool // or did not, when it should have
	gate    gate
	held    []byte

	forgotten bool // nothing passes any more, and no end is told
}

// gate decides the fate of answers.
type gate int

const (
	open gate = iota // they pass
	hold             // they wait
	drop             // they are lost
)

func (c *conn) requests() {
	defer c.leave()
	r := bufio.NewReaderSize(c.client, 1<<16)
	m, err := readStartup(r)
	for err == nil && c.request(m) {
		m, err = readMessage(r)
	}
}

// leave ends the connection when the client has.
func (c *conn) leave() {
	c.proxy.mu.Lock()
	delete(c.proxy.open, c)
	c.proxy.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.client.Close()
	if !c.forgotten {
		_ = c.server.Close()
	}
}

// forget has nothing pass any more, in either direction.
func (c *conn) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate, c.held, c.forgotten = drop, nil, true
	c.changed.Broadcast()
}

// request forwards a message, with the fault that is due at it. It returns
// false if the connection is cut.
func (c *conn) request(m message) bool {
	if m.kind == 'X' || c.isForgotten() { // the client leaves, or is not heard
		c.send(m)
		return true
	}
	f, over, due := c.proxy.count(m.kind, c.statements.of(m))
	if !due {
		c.send(m)
		return true
	}
	whole := c.fail(f, m)
	c.mu.Lock()
	defer c.mu.Unlock()
	over(c.stuck)
	return whole
}

// fail has a fault happen, and forwards the message as far as its point says.
func (c *conn) fail(f Fault, m message) bool {
	_ = c.server.SetReadDeadline(time.Now().Add(patience))
	c.settle()
	if f.Point == BeforeAnswer {
		c.set(hold)
	}
	if f.Point != BeforeSent {
		c.send(m)
		c.settle()
	}
	if f.Do == nil {
		c.cut()
		return false
	}
	c.mu.Lock()
	backend := c.backend
	c.mu.Unlock()
	f.Do(backend)
	_ = c.server.SetReadDeadline(time.Time{})
	c.set(open)
	if f.Point == BeforeSent {
		c.send(m)
	}
	return true
}

// send forwards a message. That Postgres has hung up is found out in answers,
// which has its last words.
func (c *conn) send(m message) {
	c.mu.Lock()
	lost := c.forgotten
	if !lost {
		c.owed.sent(m.kind)
		c.last = m.kind
	}
	c.mu.Unlock()
	if !lost {
		_, _ = c.server.Write(m.raw)
	}
}

func (c *conn) isForgotten() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forgotten
}

// settle waits until Postgres has answered everything that it was sent.
func (c *conn) settle() {
	c.mu.Lock()
	asked := len(c.owed.kinds) == 0 || flushed(c.last)
	c.mu.Unlock()
	if !asked {
		c.send(flush)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.owed.kinds) > 0 && !c.ended && !c.forgotten {
		c.changed.Wait()
	}
}

// cut ends the connection for both sides, for Postgres first: when it has hung
// up, uncommitted work is rolled back.
func (c *conn) cut() {
	c.set(drop)
	socket := c.server
	if secure, ok := socket.(*tls.Conn); ok {
		socket = secure.NetConn() // Postgres does not hang up for a mere end of TLS
	}
	if half, ok := socket.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	} else {
		_ = socket.Close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended {
		c.changed.Wait()
	}
}

// set changes the fate of answers; those that were held go first.
func (c *conn) set(g gate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten {
		return
	}
	if g == open && len(c.held) > 0 {
		_, _ = c.client.Write(c.held)
	}
	if g == open && c.ended {
		_ = c.client.Close()
	}
	c.gate, c.held = g, nil
}

func (c *conn) answers() {
	defer c.server.Close()
	r := bufio.NewReader(c.server)
	for {
		m, err := readMessage(r)
		if err != nil {
			c.end(errors.Is(err, os.ErrDeadlineExceeded))
			return
		}
		c.answer(m)
	}
}

func (c *conn) answer(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.gate {
	case hold:
		c.held = append(c.held, m.raw...)
	case open:
		c.mu.Unlock() // the client may be sending, too
		_, _ = c.client.Write(m.raw)
		c.mu.Lock()
	}
	if m.kind == 'K' {
		c.backend = binary.BigEndian.Uint32(m.body)
	}
	c.owed.received(m)
	c.changed.Broadcast()
}

// end tells that Postgres has hung up, or is stuck.
func (c *conn) end(stuck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.stuck = true, stuck
	c.changed.Broadcast()
	if c.gate == open {
		_ = c.client.Close()
	}
}

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
