package idemtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// delivery is a request that can be sent any number of times.
type delivery struct {
	request *http.Request
	body    []byte
}

func (m *matrix) read(r *http.Request) delivery {
	m.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.Fatalf("idemtest: a delivery's body cannot be read: %v", err)
	}
	return delivery{request: r, body: body}
}

func (d delivery) send(ctx context.Context) *http.Request {
	r := d.request.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(d.body))
	return r
}

// trial is one run of the application, on an empty schema.
type trial struct {
	*matrix
	proxy     *pgproxy.Proxy
	pool      *pgxpool.Pool // the application's, through the proxy
	processor *idem.Processor
	err       error // of the last delivery
}

func (m *matrix) start() *trial {
	m.Helper()
	if _, err := m.direct.Exec(m.Context(), m.empty); err != nil {
		m.Fatalf("idemtest: the schema cannot be emptied: %v", err)
	}
	if err := idem.Migrate(m.Context(), m.direct); err != nil {
		m.Fatal(err)
	}
	run := &trial{matrix: m, proxy: new(pgproxy.Proxy)}
	run.pool = m.open(run.proxy.Through)
	run.processor = idem.NewProcessor(run.pool, m.source(run.pool))
	run.processor.Logger = nil
	run.processor.Observe = func(_ context.Context, o idem.Observation) { run.err = o.Err }
	return run
}

func (m *matrix) open(set func(*pgxpool.Config)) *pgxpool.Pool {
	m.Helper()
	config, err := pgxpool.ParseConfig(m.url)
	if err != nil {
		m.Fatal(err)
	}
	set(config)
	pool, err := pgxpool.NewWithConfig(m.Context(), config)
	if err != nil {
		m.Fatalf("idemtest: no pool for the test: %v", err)
	}
	return pool
}

// end finds what the application left open.
func (run *trial) end() {
	run.Helper()
	if n := closePool(run.pool, 5*time.Second); n > 0 {
		run.Errorf("idemtest: %d connections of the pool are still in use after the deliveries: have the handler release them, and close rows and transactions", n)
	}
}

// deliver sends a request once, and returns the answer's status.
func (run *trial) deliver(d delivery) int {
	w := httptest.NewRecorder()
	run.processor.ServeHTTP(w, d.send(run.Context()))
	return w.Code
}

// patient is how often the provider delivers: a cut connection costs one
// delivery, and leaves at most one more to stumble over.
const patient = 5

func (run *trial) deliverUntilStored(deliveries []delivery) {
	run.Helper()
	for _, d := range deliveries {
		status := 0
		for n := 0; n < patient && status != http.StatusOK; n++ {
			status = run.deliver(d)
		}
		if status != http.StatusOK {
			run.Fatalf("idemtest: a delivery is still answered %d when it has come %d times: %v", status, patient, run.err)
		}
	}
}
