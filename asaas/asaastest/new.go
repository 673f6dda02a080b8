package asaastest

import (
	"context"
	"net/http/httptest"
	"time"
)

// New makes a fake without a socket, also for a bubble of testing/synctest: it
// is an [http.Handler], [Fake.Transport] reaches it, and it delivers to a webhook's
// Handler. Its clock begins at 2026-08-08 23:45:13 UTC.
func New() *Fake {
	f := &Fake{
		APIKey:             "$aact_hmlg_fake",
		Limit:              RateLimit{Requests: 25000, Window: 12 * time.Hour},
		RemoveBackoffLimit: RateLimit{Requests: 5, Window: time.Minute},
		Schedule:           PortugueseSchedule,
		Parallelism:        10,
		Timeout:            10 * time.Second,
		now:                start,
		events:             make(map[string]event),
		limits:             make(limits),
		account:            account{charges: make(map[string]*charge)},
	}
	f.ctx, f.close = context.WithCancel(context.Background())
	f.routes = f.newRoutes()
	f.memory = newMemory(f, f.complaints())
	f.direct = newTransport(f.memory.dial, f.memory.dial)
	return f
}

// NewServer is [New] with the API listening on a port of this machine, see URL.
// It panics if there is no port to have.
func NewServer() *Fake {
	f := New()
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = f.complaints()
	server.Config.SetKeepAlivesEnabled(false) // else net/http's client hides an APIReset by trying again
	server.Start()
	f.URL = server.URL
	cancel := f.close
	f.close = func() {
		cancel()
		server.CloseClientConnections()
		server.Close()
	}
	return f
}

// start is when [Event] says that its events happened, 20:45:13 in Brasília.
var start = time.Date(2026, 8, 8, 23, 45, 13, 0, time.UTC)
