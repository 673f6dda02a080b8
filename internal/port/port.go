// Package port finds ports for servers that tests start, and start again.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// Address returns 127.0.0.1 with a port of [Free].
func Address(t testing.TB) string {
	t.Helper()
	n, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", n)
}

// Operating systems take the ports of outgoing connections, and of listeners on port 0,
// from above these: 32768 on Linux, 49152 on others.
const firstPort, ports = 12000, 20000

// Processes begin at different ports, and try each once.
var (
	begin = rand.Uint32N(ports)
	tried atomic.Uint32
)

// Free returns a port of 127.0.0.1 without a listener. No connection that a program
// opens takes it, as one could take a port that was found by listening on port 0,
// and no other call in this process returns it.
func Free() (n int, err error) {
	for range 100 {
		n = firstPort + int(begin+tried.Add(1))%ports
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", n)); err == nil {
			return n, l.Close()
		}
	}
	return 0, fmt.Errorf("port: a hundred ports between %d and %d are taken: %w", firstPort, firstPort+ports, err)
}

// Gone returns the URL of an address where nobody listens: it is the client's end of a connection, so that no other
// test is given its port.
func Gone(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return "http://" + c.LocalAddr().String()
}
