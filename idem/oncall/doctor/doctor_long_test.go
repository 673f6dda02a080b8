//go:build long

package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paghooks/paghooks/internal/postgres"
)

// All is well: nothing is found, by no check.
func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{Durable: true, Settings: map[string]string{"idle_in_transaction_session_timeout": "60s"}})
	p.Exec(`insert into idem_events (event, type, key, state) select 'notes//done-' || n, 'paid', 'k' || n, 'done' from generate_series(1, 1000) n`)
	p.event("later", "k", "pending", "-1 hour") // its next attempt
	p.event("now", "k2", "pending", "0 s")
	p.WorkersElsewhere("notes")
	if findings := p.check(); len(findings) > 0 {
		t.Errorf("findings: %s", printed(findings))
	}
}

// A role without rights on the server is not failed for what it cannot see.
func TestARoleOfTheApplicationsHasNoErrors(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{Durable: true, Settings: map[string]string{"idle_in_transaction_session_timeout": "60s"}})
	p.role(mayAll)
	p.WorkersElsewhere("notes")
	want := []Finding{
		{Check: "replication", Severity: Info, Problem: "this role may not see the lag of replicas"},
		{Check: "old snapshots", Severity: Info, Problem: "this role may not see the transactions of other roles"},
	}
	if diff := cmp.Diff(want, p.check(), cmpopts.IgnoreFields(Finding{}, "Evidence", "Remedy")); diff != "" {
		t.Error("findings (-want +got):\n" + diff)
	}
}
