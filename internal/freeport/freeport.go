// Package freeport finds ports for servers that tests start later, or start again.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// Operating systems take the ports of outgoing connections, and of listeners on port 0,
// from above these: 32768 on Linux, 49152 on others.
const first, count = 12000, 20000

// Processes begin at different ports, and try each once.
var (
	begin = rand.Uint32N(count)
	tried atomic.Uint32
)

// Find returns a port of 127.0.0.1 without a listener. No connection that a program
// opens meanwhile takes it, as one could take a port that was found by listening on port 0,
// and no other call in this process finds it.
func Find() (port int, err error) {
	for range 100 {
		port = first + int(begin+tried.Add(1))%count
		var l net.Listener
		if l, err = net.Listen("tcp", Address(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("freeport: a hundred ports between %d and %d are taken: %w", first, first+count, err)
}

// Address is the address for a server on the port.
func Address(port int) string { return fmt.Sprint("127.0.0.1:", port) }
