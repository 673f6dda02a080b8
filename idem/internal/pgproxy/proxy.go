package pgproxy

import (
	"slices"
	"sync"
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
