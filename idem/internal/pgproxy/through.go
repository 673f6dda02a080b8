package pgproxy

import (
	"context"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

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
