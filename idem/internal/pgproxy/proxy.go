package pgproxy

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Point is the moment of a fault, before or after a message.
type Point string

const (
	// BeforeSent: Postgres has answered all earlier messages, and does not get
	// this one.
	BeforeSent Point = "before it is sent"

	// BeforeAnswer: Postgres has acted on the message (has committed, for
	// COMMIT), and the client does not get the answer.
	BeforeAnswer Point = "after it is sent and before its answer"

	// AfterAnswer: the client has the answer.
	AfterAnswer Point = "after its answer"
)

// Points are all of them, in the order of time.
var Points = []Point{BeforeSent, BeforeAnswer, AfterAnswer}

// Fault happens at one step, once.
type Fault struct {
	Step  int // its number; 0 for no fault
	Point Point

	// Do is called instead of cutting the connection, on a goroutine of the
	// proxy; afterwards the message or its answer goes on. backend is the
	// server process of the connection, 0 while there is none.
	Do func(backend uint32)
}

// Proxy is between a pool and Postgres. Its zero value is ready, and lets
// everything pass.
type Proxy struct {
	mu    sync.Mutex
	armed bool
	fault Fault
	fired chan struct{} // closed when the fault is over; nil before it begins
	stuck bool          // Postgres was, and the fault did not happen as it should
	steps []Step
	open  map[forgetter]bool
}

// forgetter is an open connection.
type forgetter interface{ forget() }

// Arm counts from now on, from 1, and sets the fault.
func (p *Proxy) Arm(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.fault, p.fired, p.stuck, p.steps = true, f, nil, false, nil
}

// Disarm stops counting. It returns the steps since Arm, and whether the fault
// happened: the step it happened at is steps[fault.Step-1]. A fault that is
// happening is over when Disarm returns. It did not happen if Postgres did not
// answer, or did not hang up, within half a minute.
func (p *Proxy) Disarm() (steps []Step, fired bool) {
	p.mu.Lock()
	p.armed = false
	over := p.fired
	p.mu.Unlock()
	if over != nil {
		<-over
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.steps), over != nil && !p.stuck
}

// Forget acts like a firewall that forgets its connections: on those that
// are open now nothing passes any more, in either direction. Neither side is
// told, nor that the other has hung up: a session of Postgres keeps its locks
// until Postgres itself ends it. New connections work.
//
// Messages on their way may still arrive. To forget at a certain message, call
// Forget in the Do of a [Fault].
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.forget()
	}
	clear(p.open)
}

// count numbers a message. If the fault is due at it, the caller has it happen
// and then calls over.
func (p *Proxy) count(kind byte, statement string) (f Fault, over func(stuck bool), due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed {
		return Fault{}, nil, false
	}
	n := len(p.steps) + 1
	p.steps = append(p.steps, Step{Number: n, Message: messages[kind], Statement: statement, Answered: flushed(kind)})
	if n != p.fault.Step {
		return Fault{}, nil, false
	}
	fired := make(chan struct{})
	p.fired = fired
	return p.fault, func(stuck bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stuck = stuck
		close(fired)
	}, true
}

// Through leads the connections of a pool through the proxy. The pool sends no
// pings, which would come or not, as time goes by, and be counted.
func (p *Proxy) Through(c *pgxpool.Config) {
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	c.ConnConfig.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, server net.Conn) (net.Conn, error) {
		return p.connect(server), nil
	}
}

// pipe is the client's end of a connection. A request to cancel a query goes to
// the server's own address.
type pipe struct {
	net.Conn
	server net.Conn
}

func (p pipe) RemoteAddr() net.Addr { return p.server.RemoteAddr() }
func (p pipe) LocalAddr() net.Addr  { return p.server.LocalAddr() }

func (p *Proxy) connect(server net.Conn) net.Conn {
	ours, theirs := net.Pipe()
	c := &conn{proxy: p, client: ours, server: server}
	c.statements = statements{prepared: make(map[string]string), portals: make(map[string]string)}
	c.changed.L = &c.mu
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = make(map[forgetter]bool)
	}
	p.open[c] = true
	go c.requests()
	go c.answers()
	return pipe{theirs, server}
}

// Step is one message from the client to Postgres.
type Step struct {
	Number    int    // from 1, over all connections since Arm
	Message   string // in the words of the protocol: Parse, Bind, Execute, Sync, Query, …
	Statement string // the SQL it is about, in one line, without values; "" at the start of a connection

	// Answered: Postgres answers at once. It keeps the answers to the other
	// messages, Parse, Bind, Describe and Execute, until the next Sync.
	Answered bool
}

// String is the step for people: message 7, Execute of "insert into …".
func (s Step) String() string {
	if s.Statement == "" {
		return fmt.Sprintf("message %d, %s", s.Number, s.Message)
	}
	return fmt.Sprintf("message %d, %s of %q", s.Number, s.Message, s.Statement)
}

// messages are the names of the messages that a client sends.
var messages = map[byte]string{
	0: "StartupMessage", 'p': "PasswordMessage", 'P': "Parse", 'B': "Bind", 'D': "Describe", 'E': "Execute", 'C': "Close",
	'S': "Sync", 'H': "Flush", 'Q': "Query", 'F': "FunctionCall", 'd': "CopyData", 'c': "CopyDone", 'f': "CopyFail",
}

// statements knows which SQL the messages of one connection are about.
type statements struct {
	prepared, portals map[string]string
	last              string
}

// of returns the SQL of a message. One that names none, such as Sync, is about
// the same as the message before it.
func (s *statements) of(m message) string {
	fields := bytes.SplitN(m.body, []byte{0}, 3)
	name := func(i int) string { return string(fields[i]) }
	switch m.kind {
	case 'P':
		s.last = oneLine(name(1))
		s.prepared[name(0)] = s.last
	case 'B':
		s.last = s.prepared[name(1)]
		s.portals[name(0)] = s.last
	case 'E':
		s.last = s.portals[name(0)]
	case 'D', 'C':
		named := s.prepared
		if fields[0][0] == 'P' {
			named = s.portals
		}
		s.last = named[name(0)[1:]]
	case 'Q':
		s.last = oneLine(values.ReplaceAllString(name(0), "…"))
	}
	return s.last
}

// values are the literals that pgx writes into the text of a Query, where the extended
// protocol has $1.
var values = regexp.MustCompile(`'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b`)

// oneLine shortens SQL to its first words.
func oneLine(sql string) string {
	line := []rune(strings.Join(strings.Fields(sql), " "))
	if len(line) > 100 {
		return string(line[:100]) + "…"
	}
	return string(line)
}
