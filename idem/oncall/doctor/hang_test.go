//go:build long && unix

package doctor

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paghooks/paghooks/internal/postgres"
)

// pids returns the process of the server, and those of its sessions but the one that asks.
func (p *patient) pids() (server int, sessions []int) {
	p.Helper()
	const ask = `
select split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int,
	(select coalesce(array_agg(pid), '{}') from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid())`
	if err := p.Pool.QueryRow(p.Context(), ask).Scan(&server, &sessions); err != nil {
		p.Fatal(err)
	}
	return server, sessions
}

// stop stops processes of the server until the test ends: they keep their connections, and answer nothing. No
// statement_timeout ends a statement then, nor does TCP.
func (p *patient) stop(pids ...int) {
	p.Helper()
	for _, pid := range pids {
		p.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			p.Fatal(err)
		}
	}
}

func TestAServerThatStopsAnsweringDoesNotHangIt(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the test fails, and does not hang either
	defer cancel()
	limits := defaults
	// examine has the server stop during the clock's check, which asks next. On a busy machine it may not come so far
	// within the limits: they grow.
	examine := func(stop func(), short ...*time.Duration) (findings []Finding, err error) {
		stopped := false
		limits.now = func() time.Time {
			if !stopped {
				stop()
			}
			stopped = true
			return time.Now()
		}
		for limit := 100 * time.Millisecond; !stopped && ctx.Err() == nil; limit *= 2 {
			for _, l := range short {
				*l = limit
			}
			findings, err = limits.examine(ctx, p.connect(p.config.Copy()), nil)
		}
		return findings, err
	}

	findings, err := examine(func() {
		_, sessions := p.pids()
		p.stop(sessions...)
	}, &limits.check)
	if err != nil || !finds(findings, "clock", Warning, "this could not be checked", "deadline exceeded") {
		t.Errorf("with a session that does not answer, and others that do: %v, want the clock's check among the findings:\n%s", err, printed(findings))
	}

	_, err = examine(func() {
		server, sessions := p.pids()
		p.stop(append(sessions, server)...)
	}, &limits.check, &limits.answer)
	if err == nil || !strings.HasPrefix(err.Error(), "doctor: clock: the database does not answer any more: ") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a server that does not answer it returns %v", err)
	}

	_, err = limits.examine(ctx, p.connect(p.config.Copy()), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "doctor: the database cannot be asked: ") || ctx.Err() != nil {
		t.Errorf("with a server that has not answered from the start it returns %v", err)
	}
}
