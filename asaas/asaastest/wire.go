package asaastest

import (
	"bytes"
	"context"
	"net"
)

// wire is a connection that does something bad to the request sent on it.
type wire struct {
	net.Conn
	slow   bool
	cut    bool
	left   int  // how much of the body still gets through
	inBody bool // the header is sent
}

// withFault makes dial's connections bad ones, for a body of this size.
func withFault(dial dialer, fault Fault, size int) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: conn, slow: fault.has(SlowBody), cut: fault.has(CutBody), left: size / 2}, nil
	}
}

// Write sends the part that gets through, and returns as if all had been sent: the
// receiver's answer is waited for.
func (c *wire) Write(p []byte) (int, error) {
	through := p
	if c.cut {
		through = p[:c.through(p)]
	}
	if err := c.send(through); err != nil {
		return 0, err
	}
	if len(through) < len(p) {
		c.closeWrite()
	}
	return len(p), nil
}

// through returns the number of bytes of p that get through: the header, and half of the body.
func (c *wire) through(p []byte) int {
	header := 0
	if !c.inBody {
		end := []byte("\r\n\r\n")
		i := bytes.Index(p, end)
		if i < 0 {
			return len(p)
		}
		c.inBody, header = true, i+len(end)
	}
	body := min(len(p)-header, c.left)
	c.left -= body
	return header + body
}

func (c *wire) send(p []byte) error {
	step := max(len(p), 1)
	if c.slow {
		step = 1
	}
	for len(p) > 0 {
		n, err := c.Conn.Write(p[:min(step, len(p))])
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// closeWrite ends the request, and leaves the way back for the answer open.
func (c *wire) closeWrite() {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = conn.CloseWrite() // the receiver may have gone
	}
}

// dialer opens a connection.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)
