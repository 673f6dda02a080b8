package idemtest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/idem/internal/store"
)

func TestFaultsThatMakeNoDifferenceAreLeftOut(t *testing.T) {
	t.Parallel()
	prepare := []string{"Parse", "Describe", "Parse", "Describe"}
	execute := []string{"Bind", "Describe", "Execute", "Bind", "Execute"}
	for _, c := range []struct {
		why      string
		messages []string
		want     []string
	}{
		{"statements are forgotten with their connection", append(prepare, "Sync"), []string{
			"Parse before it is sent",
			"Sync after it is sent and before its answer", "Sync after its answer",
		}},
		{"each Execute changes something", append(execute, "Sync"), []string{
			"Bind before it is sent",
			"Bind before it is sent",
			"Sync before it is sent", "Sync after it is sent and before its answer", "Sync after its answer",
		}},
		{"a Query is all of that", []string{"Query"}, []string{
			"Query before it is sent", "Query after it is sent and before its answer", "Query after its answer",
		}},
		{"a new connection is a session", []string{"StartupMessage", "Query"}, []string{
			"StartupMessage before it is sent", "StartupMessage after it is sent and before its answer", "StartupMessage after its answer",
			"Query before it is sent", "Query after it is sent and before its answer", "Query after its answer",
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range faultsIn(0, steps(c.messages)) {
				got = append(got, f.step.Message+" "+string(f.point))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func steps(messages []string) (steps []pgproxy.Step) {
	for n, message := range messages {
		answered := message != "Execute" && !slices.Contains(preparing, message)
		steps = append(steps, pgproxy.Step{Number: n + 1, Message: message, Answered: answered})
	}
	return steps
}

func TestLeakedConnectionDoesNotHangTheTest(t *testing.T) {
	t.Parallel()
	pool := Pool(t)
	leaked, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := closePool(pool, time.Millisecond); got != 1 {
		t.Errorf("%d connections leaked", got)
	}
	leaked.Release()
	if got := closePool(pool, time.Minute); got != 0 {
		t.Errorf("%d connections leaked after their release", got)
	}
}

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
	_, err = run.deliver(m.read(r))
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.ClaimEvents(t.Context(), m.direct, store.Search{Source: "pings", Limit: 1, Worker: 1, Crashed: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Claims) != 1 {
		t.Fatalf("%d claims, want 1", len(found.Claims))
	}
	if done, err := run.attempt(); !done || err != nil {
		t.Errorf("done is %t, %v", done, err)
	}
}

// Permutations are the orders that AnyOrder tries.
var Permutations = permutations
