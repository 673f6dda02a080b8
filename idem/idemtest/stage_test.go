package idemtest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// pings is a provider of one event.
type pings struct{ idem.Routes }

type ping struct{}

func (*pings) Name() string { return "pings" }

func (*pings) Open(r *http.Request) (idem.Event, error) {
	body, err := idem.ReadBody(r)
	return idem.Event{ID: "evt_1", Type: "ping", Payload: body}, err
}

func TestSignOfDeadWorkersIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	m := &matrix{TB: t, byWorkers: true, source: func(*pgxpool.Pool) idem.Source {
		source := new(pings)
		idem.Handle(&source.Routes, "ping", func(context.Context, pgx.Tx, *ping) error { return nil })
		return source
	}}
	m.connect()
	defer m.direct.Close()
	run := m.start()
	defer run.end()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.deliver(r)
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.FindClaims(t.Context(), m.direct, store.Search{Source: "pings", Limit: 1, Worker: 1, Crashed: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Claims) != 1 {
		t.Fatalf("%d claims, want 1", len(found.Claims))
	}
	if done, err := run.work(); !done || err != nil {
		t.Errorf("done is %t, %v", done, err)
	}
}
