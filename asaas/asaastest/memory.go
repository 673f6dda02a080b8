package asaastest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/fixture"
)

// memory serves a handler over HTTP on connections without sockets. Between
// requests it has no goroutine.
type memory struct {
	server *http.Server

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // connections, and so the handlers on them
}

func newMemory(handler http.Handler, complaints *log.Logger) *memory {
	m := new(memory)
	m.server = &http.Server{
		Handler:  handler,
		ErrorLog: complaints,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				m.open.Done()
			}
		},
	}
	return m
}

func (m *memory) dial(context.Context, string, string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, net.ErrClosed
	}
	m.open.Add(1)
	client, server := duplexPipe()
	go m.serve(server)
	return client, nil
}

func (m *memory) serve(conn net.Conn) {
	listener := &once{conn: conn}
	_ = m.server.Serve(listener) // returns an error at once, while the connection is served
	if !listener.accepted {
		_ = conn.Close() // closing a pipe does not fail
		m.open.Done()
	}
}

// close ends the connections, and waits a while for handlers that still run.
func (m *memory) close(timeout time.Duration) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	_ = m.server.Close() // it has no listener that could fail
	fixture.Await(&m.open, timeout)
}

// once is a listener for one connection.
type once struct {
	conn     net.Conn
	accepted bool
}

func (l *once) Accept() (net.Conn, error) {
	if l.accepted {
		return nil, io.EOF
	}
	l.accepted = true
	return l.conn, nil
}

func (l *once) Close() error   { return nil }
func (l *once) Addr() net.Addr { return l.conn.LocalAddr() }

// duplex is a connection in memory of which one direction can end before the
// other, like TCP's.
type duplex struct {
	net.Conn // for reading
	out      net.Conn
	remote   net.Addr
}

// duplexPipe returns both ends. To the server the client has an address of
// Asaas's.
func duplexPipe() (client, server net.Conn) {
	toServer, fromClient := net.Pipe()
	toClient, fromServer := net.Pipe()
	official := asaas.OfficialAddresses()[0].Addr().AsSlice()
	return &duplex{Conn: toClient, out: fromClient, remote: toClient.RemoteAddr()},
		&duplex{Conn: toServer, out: fromServer, remote: &net.TCPAddr{IP: official, Port: 40000}}
}

func (d *duplex) Write(p []byte) (int, error) { return d.out.Write(p) }
func (d *duplex) RemoteAddr() net.Addr        { return d.remote }
func (d *duplex) CloseWrite() error           { return d.out.Close() }

func (d *duplex) Close() error {
	_ = d.out.Close() // closing a pipe does not fail
	return d.Conn.Close()
}

func (d *duplex) SetDeadline(t time.Time) error {
	_ = d.out.SetDeadline(t) // fails as the other does, when closed
	return d.Conn.SetDeadline(t)
}

func (d *duplex) SetWriteDeadline(t time.Time) error { return d.out.SetWriteDeadline(t) }
