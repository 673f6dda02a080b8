//go:build long && !race

package promises_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

func TestConnectionCutAtEveryMessageNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	cutAt(t, every)
}

func TestProcessKilledAtEveryMessageNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	killAt(t, every)
}

// The administrator, or a failover, ends the server process before any message.
func TestBackendTerminatedAnywhereNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	for _, p := range slices.Concat(paths, inboxPaths) {
		if p.cold {
			continue // before a connection there is no process to end
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, p, idemtest.URL(t))
			for _, step := range r.steps() {
				r.fail(step, pgproxy.Fault{Step: step.Number, Point: pgproxy.BeforeSent, Do: r.terminate})
			}
		})
	}
}

func every[S any](all []S) []S { return all }

// terminate ends a server process, and waits until it is gone.
func (r *rig) terminate(backend uint32) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const end = `select coalesce((select pg_terminate_backend(pid) from pg_stat_activity where pid = $1), false)`
	for there := true; there; {
		if err := r.app.Pool.QueryRow(ctx, end, backend).Scan(&there); err != nil {
			r.Errorf("terminating %d: %v", backend, err)
			return
		}
	}
}
