package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/idem/outbox"
)

// Check examines the database behind pool, and the events and settings of the
// receivers, and returns its findings, the worst first. It changes nothing: what
// it tries is rolled back.
//
// It returns an error if ctx ends, or if the database does not answer: every wait for it
// has an end, also where ctx has none. A check that cannot be made, or that takes longer
// than a minute, is a finding.
func Check(ctx context.Context, pool *pgxpool.Pool, receivers ...idem.Receiver) ([]Finding, error) {
	return defaults.examine(ctx, pool, receivers)
}

var defaults = limits{
	now:         time.Now,
	version:     130000,
	skew:        2 * time.Second,
	transaction: 5 * time.Minute,
	lag:         64 << 20,
	dead:        10_000,
	notTaken:    time.Minute,
	redelivery:  31 * 24 * time.Hour,
	silence:     5 * time.Minute,
	used:        0.9,
	statement:   time.Second,
	check:       time.Minute,
	answer:      10 * time.Second,
	features:    features,
}

// checks are all of them, in the order in which they run.
var checks = []struct {
	name string
	run  func(*examination, context.Context) ([]Finding, error)
}{
	{"version", (*examination).version},
	{"writable", (*examination).writable},
	{"statement timeout", (*examination).statementTimeout},
	{"pooler", (*examination).pooler},
	{"keepalives", (*examination).keepalives},
	{"clock", (*examination).clock},
	{"connections", (*examination).connections},
	{"durability", (*examination).durability},
	{"replication", (*examination).replication},
	{"old snapshots", (*examination).snapshots},
	{"rights", (*examination).rights},
	{"schemas", (*examination).schemas},
	{"migrations", (*examination).migrations},
	{"columns", (*examination).columns},
	{"view", (*examination).views},
	{"indexes", (*examination).indexes},
	{"features", (*examination).features},
	{"plans", (*examination).plans},
	{"autovacuum", (*examination).autovacuum},
	{"retention", (*examination).retention},
	{"workers", (*examination).workers},
	{"stuck", (*examination).stuck},
	{"parked", (*examination).parked},
	{"blocked", (*examination).blocked},
	{"conflicts", (*examination).conflicts},
	{"scopes", (*examination).scopes},
}

// needTables are the checks that make no sense without the tables.
var needTables = []string{"features", "plans", "workers", "stuck", "parked", "blocked", "conflicts", "scopes"}

func (l limits) examine(ctx context.Context, pool *pgxpool.Pool, receivers []idem.Receiver) ([]Finding, error) {
	e := &examination{limits: l, pool: pool, db: unprepared{pool}}
	for _, r := range receivers {
		o := operator.New(r, "doctor")
		e.operators = append(e.operators, o)
		if _, ok := r.(*outbox.Outbox); ok {
			e.outboxes = append(e.outboxes, o.SourceName())
		}
	}
	there, err := e.hasTables(ctx)
	if err != nil {
		return nil, fmt.Errorf("doctor: the database cannot be asked: %w", err)
	}
	var all []Finding
	for _, c := range checks {
		if !there && slices.Contains(needTables, c.name) {
			continue
		}
		findings, err := e.run(ctx, c.run)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("doctor: %s: %w", c.name, context.Cause(ctx))
		}
		if errors.Is(err, context.DeadlineExceeded) {
			if _, lost := e.hasTables(ctx); lost != nil {
				return nil, fmt.Errorf("doctor: %s: the database does not answer any more: %w", c.name, lost)
			}
		}
		if err != nil {
			findings = append(findings, Finding{
				Severity: Warning, Problem: "this could not be checked", Evidence: err.Error(),
				Remedy: "see whether the role may read the tables, and whether the connection works",
			})
		}
		for _, f := range findings {
			f.Check = c.name
			all = append(all, f)
		}
	}
	order := []Severity{Error, Warning, Info}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	return all, nil
}

// hasTables reports whether there are tables. It is a question that each database answers at once.
func (e *examination) hasTables(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.answer)
	defer cancel()
	return one[bool](ctx, e, `select to_regclass('idem_events') is not null and to_regclass('idem_payloads') is not null`)
}

// run makes a check. Its statements have time-outs at the server, which does not end them while its process
// is stopped, or while the network swallows the answer.
func (e *examination) run(ctx context.Context, check func(*examination, context.Context) ([]Finding, error)) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.check)
	defer cancel()
	return check(e, ctx)
}
