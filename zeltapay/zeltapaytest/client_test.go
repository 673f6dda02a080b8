package zeltapaytest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// counted counts the writes of one byte.
type counted struct {
	net.Conn
	ones *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	if len(p) == 1 {
		c.ones.Add(1)
	}
	return c.Conn.Write(p)
}

func TestOverHTTPASlowBodyLeavesByteByByte(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a receiver that answers early is not sent the rest
	}))
	defer server.Close()
	for _, c := range []struct {
		fault Fault
		slow  bool
	}{{0, false}, {SlowBody, true}} {
		var ones atomic.Int64
		fake := New()
		fake.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return counted{conn, &ones}, err
		}
		fake.AddWebhook(Webhook{URL: server.URL})
		fake.Inject(c.fault)
		body := Event("payment.success")
		fake.Emit(body)
		fake.Settle()
		if got := ones.Load(); (got >= int64(len(body))) != c.slow {
			t.Errorf("fault %d: of a body of %d bytes %d left alone", c.fault, len(body), got)
		}
		fake.Close()
	}
}
