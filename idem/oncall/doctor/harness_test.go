package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// patient is a database under examination.
type patient struct {
	*testkit.Shop // over connections of the owner
	config        *pgxpool.Config
	limits        limits
	inbox         *idem.Inbox // on the pool that is examined
}

func newPatient(t *testing.T, url string) *patient {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 4
	p := &patient{Shop: &testkit.Shop{TB: t}, config: config, limits: defaults}
	p.Pool = p.connect(config.Copy())
	p.migrate()
	return p
}

func (p *patient) migrate() {
	p.Helper()
	if err := idem.Migrate(p.Context(), p.Pool); err != nil {
		p.Fatal(err)
	}
}

// elsewhere returns a patient in a new database of the same server.
func (p *patient) elsewhere(made string) *patient {
	p.Helper()
	var name string
	if err := p.Pool.QueryRow(p.Context(), `select current_schema() || ' elsewhere'`).Scan(&name); err != nil {
		p.Fatal(err)
	}
	quoted := pgx.Identifier{name}.Sanitize()
	p.Exec(`create database ` + quoted + ` ` + made)
	p.Cleanup(func() { p.Exec(`drop database ` + quoted) })
	e := &patient{Shop: &testkit.Shop{TB: p.TB}, config: p.config.Copy(), limits: p.limits}
	e.config.ConnConfig.Database = name
	e.config.ConnConfig.RuntimeParams["search_path"] = "public"
	e.Pool = e.connect(e.config.Copy())
	e.migrate()
	return e
}

func (p *patient) connect(c *pgxpool.Config) *pgxpool.Pool {
	p.Helper()
	pool, err := pgxpool.NewWithConfig(p.Context(), c)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(pool.Close)
	return pool
}

// session sets a parameter of the sessions that are examined.
func (p *patient) session(name, value string) { p.config.ConnConfig.RuntimeParams[name] = value }

// role has the examined sessions be of a role that has no right but these.
func (p *patient) role(grants string) {
	p.Helper()
	var schema string
	if err := p.Pool.QueryRow(p.Context(), `select current_schema()`).Scan(&schema); err != nil {
		p.Fatal(err)
	}
	name := schema + "_app"
	p.Exec(`create role ` + name + `; grant usage on schema ` + schema + ` to ` + name + `;` + strings.NewReplacer("SCHEMA", schema, "ROLE", name).Replace(grants))
	p.Cleanup(func() { p.Exec(`drop owned by ` + name + `; drop role ` + name) })
	p.session("role", name)
}

// earlierSchema makes a schema, which comes first in the search_path of the sessions
// that are examined.
func (p *patient) earlierSchema() string {
	p.Helper()
	var schema string
	if err := p.Pool.QueryRow(p.Context(), `select current_schema()`).Scan(&schema); err != nil {
		p.Fatal(err)
	}
	own := schema + "_own"
	p.Exec(`create schema ` + own)
	p.Cleanup(func() { p.Exec(`drop schema ` + own + ` cascade`) })
	p.session("search_path", own+", "+schema)
	return own
}

// event stores an event that is not done; due is how long ago, "" is not.
func (p *patient) event(id, key, state, due string) {
	p.Helper()
	dueAt := "null"
	if due != "" {
		dueAt = "now() - interval '" + due + "'"
	}
	p.Exec(fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at) values ('notes//%s', 'paid', '%s', '%s', now());
		insert into idem_payloads (event, source, lane, due_at, received_at, body) values ('notes//%[1]s', 'notes', 'notes//%[2]s', %[4]s, now(), '{}')`, id, key, state, dueAt))
}

func (p *patient) check() []Finding {
	p.Helper()
	pool := p.connect(p.config.Copy())
	defer pool.Close()
	inbox := idem.NewInbox(pool, testkit.NewSource("notes"))
	if p.inbox != nil {
		inbox.Retention.Events = p.inbox.Retention.Events
	}
	findings, err := p.limits.examine(p.Context(), pool, []idem.Receiver{inbox})
	if err != nil {
		p.Fatal(err)
	}
	return findings
}

// want checks that there is a finding, with evidence and a remedy.
func (p *patient) want(check string, severity Severity, problem, evidence string) {
	p.Helper()
	findings := p.check()
	if !finds(findings, check, severity, problem, evidence) {
		p.Errorf("it does not find %s, %s: %s (%s), but:\n%s", check, severity, problem, evidence, printed(findings))
	}
}

// wantNo checks that there is no such finding.
func (p *patient) wantNo(check string, severity Severity, problem string) {
	p.Helper()
	if findings := p.check(); finds(findings, check, severity, problem, "") {
		p.Errorf("it finds %s, %s: %s:\n%s", check, severity, problem, printed(findings))
	}
}

func finds(findings []Finding, check string, severity Severity, problem, evidence string) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Check == check && f.Severity == severity && strings.Contains(f.Problem, problem) && strings.Contains(f.Evidence, evidence)
	})
}

func printed(findings []Finding) string {
	text, err := json.MarshalIndent(findings, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(text)
}
