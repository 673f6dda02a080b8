package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// wire lies between an implementation and Postgres: it counts round
// trips, and makes each take longer.
type wire struct {
	delay time.Duration
	trips atomic.Int64
}

// dialer returns a dial function for connections over the wire.
func (w *wire) dialer(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &tripConn{Conn: conn, wire: w}, nil
	}
}

// tripConn is a connection on the wire. A round trip is a write, in one
// piece or several, until the next read.
type tripConn struct {
	net.Conn
	wire *wire
	sent atomic.Bool
}

func (c *tripConn) Write(p []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(p)
}

func (c *tripConn) Read(p []byte) (int, error) {
	if c.sent.Swap(false) {
		c.wire.trips.Add(1)
		if c.wire.delay > 0 {
			time.Sleep(c.wire.delay)
		}
	}
	return c.Conn.Read(p)
}
