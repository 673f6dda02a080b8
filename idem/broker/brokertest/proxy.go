package brokertest

import (
	"net"
	"sync"
	"testing"
)

// Proxy stands between clients and a broker on TCP, for a [Queue.Hang].
type Proxy struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	flows  chan struct{} // closed while bytes flow
	resume func()
	ended  bool
	opened []net.Conn
}

// NewProxy returns a proxy in front of the broker at that address, until the test ends.
func NewProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, to: address}
	p.Hang()()
	var accepting sync.WaitGroup
	accepting.Go(p.acceptAll)
	t.Cleanup(func() { p.close(); accepting.Wait() })
	return p
}

// Address returns the address that clients connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Hang has no byte pass, either way, until resume is called. Connections stay open, and
// new ones are accepted.
func (p *Proxy) Hang() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	flows := make(chan struct{})
	p.flows, p.resume = flows, sync.OnceFunc(func() { close(flows) })
	return p.resume
}

func (p *Proxy) acceptAll() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(client)
	}
}

// connect carries one connection.
func (p *Proxy) connect(client net.Conn) {
	broker, err := net.Dial("tcp", p.to)
	if err != nil || !p.keep(client, broker) {
		client.Close() // as the broker would, which is unavailable
		return
	}
	go p.carry(client, broker)
	p.carry(broker, client)
}

// keep has connections closed when the proxy is.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		for _, c := range conns {
			c.Close()
		}
		return false
	}
	p.opened = append(p.opened, conns...)
	return true
}

// carry carries bytes until either side closes.
func (p *Proxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		flows := p.flows
		p.mu.Unlock()
		<-flows
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.resume()
	for _, c := range p.opened {
		c.Close()
	}
}
