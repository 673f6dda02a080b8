package idemtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

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
	run.app = m.source(run.pool)
	run.stored = idem.NewProcessor(m.direct, run.app)
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

// end finds the connections that the application left open.
func (run *trial) end() {
	run.Helper()
	if n := closePool(run.pool, 5*time.Second); n > 0 {
		run.Errorf("idemtest: %d connections of the pool are still in use after the deliveries: have the handler release them, and close rows and transactions", n)
	}
}

// patient is the number of tries of a stage: a cut connection costs one try, and
// leaves at most one more to stumble over.
const patient = 5

// finish tries stages, one after the other, until they are done.
func (run *trial) finish(stages []stage) error {
	for _, s := range stages {
		var done bool
		var err error
		for n := 0; n < patient && !done; n++ {
			done, err = s.once(run)
		}
		switch {
		case !done:
			return fmt.Errorf("%s still fails when it is tried %d times: %w", s.name, patient, err)
		case err != nil:
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// errNotCut is the error of a fault that did not happen.
var errNotCut = errors.New("that did not happen: have the handler send the same statements each time, and wait for no lock of its own")

// finishWith is finish for all stages, with a fault.
func (run *trial) finishWith(f fault) error {
	if err := run.finish(run.stages[:f.stage]); err != nil {
		return fmt.Errorf("before that, %w", err)
	}
	run.proxy.Arm(pgproxy.Fault{Step: f.step.Number, Point: f.point})
	done, err := run.stages[f.stage].once(run)
	_, happened := run.proxy.Disarm()
	if !done {
		err = run.finish(run.stages[f.stage : f.stage+1])
	}
	if err == nil {
		err = run.finish(run.stages[f.stage+1:])
	}
	if !happened {
		err = errors.Join(errNotCut, err)
	}
	return err
}
