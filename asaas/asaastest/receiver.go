package asaastest

import (
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"time"
)

// receiver is the way to a webhook's receiver: a socket, or memory.
type receiver struct {
	plain, secure dialer
	sound         *http.Transport
	memory        *memory // nil for a URL
}

func newReceiver(handler http.Handler, complaints *log.Logger) *receiver {
	r := &receiver{plain: new(net.Dialer).DialContext, secure: new(tls.Dialer).DialContext}
	if handler != nil {
		r.memory = newMemory(handler, complaints)
		r.plain, r.secure = r.memory.dial, r.memory.dial
	}
	r.sound = newTransport(r.plain, r.secure)
	return r
}

// newTransport uses a connection once, so that none is left idle. It uses no
// proxy: receivers of tests are near.
func newTransport(plain, secure dialer) *http.Transport {
	return &http.Transport{DialContext: plain, DialTLSContext: secure, DisableKeepAlives: true}
}

// client returns a client that sends a request with a body of this size.
func (r *receiver) client(fault Fault, size int) *http.Client {
	transport := r.sound
	if fault.has(SlowBody | CutBody) {
		transport = newTransport(withFault(r.plain, fault, size), withFault(r.secure, fault, size))
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (r *receiver) close(timeout time.Duration) {
	r.sound.CloseIdleConnections()
	if r.memory != nil {
		r.memory.close(timeout)
	}
}
