package doctor

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// pooled puts a pooler in front of the examined sessions.
func (p *patient) pooled(sessions int) {
	p.Helper()
	pooler, err := pgproxy.NewPooler(p.Context(), p.config.ConnString(), sessions)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = pooler.Close() })
	pooler.Through(p.config)
}

func TestARoleThatOnlyLooksIsNotAskedToWrite(t *testing.T) {
	t.Parallel()
	p := newPatient(t, idemtest.URL(t))
	p.event("e1", "k", "parked", "")
	p.role(`grant select on all tables in schema SCHEMA to ROLE`)
	p.session("default_transaction_read_only", "on")
	for _, f := range p.check() {
		if f.Severity == Error && f.Check != "durability" && f.Check != "parked" || strings.Contains(f.Command, "insert") {
			t.Errorf("it finds %s", f)
		}
	}
	p.want("rights", Info, "this role may only read", "may change none of the tables")
	p.want("parked", Error, "1 event is parked", "paid 1")

	p = newPatient(t, idemtest.URL(t))
	p.role(`grant select on all tables in schema SCHEMA to ROLE; revoke select on idem_audit from ROLE`)
	const problem = "this role may not see all tables"
	p.want("rights", Info, problem, "may not select on idem_audit")
	for _, f := range p.check() {
		if f.Problem == problem {
			p.follow(f)
		}
	}
	p.wantNo("rights", Info, problem)
}

// silent is a provider that does not answer.
type silent struct{}

func (silent) SourceName() string { return "notes" }

func (silent) Problems(ctx context.Context) (problems []string, advice string, err error) {
	<-ctx.Done()
	return nil, "", ctx.Err()
}

func TestAProviderThatDoesNotAnswerIsAFinding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := CheckWebhooks(t.Context(), silent{})
		if !finds(found, "webhook", Warning, "the provider could not be asked", "deadline exceeded") {
			t.Errorf("it finds %s", printed(found))
		}
	})
}
