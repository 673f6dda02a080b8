// Package paghooks runs a program that receives payment webhooks: of Asaas (Brazil), of Zelta Pay (Central America),
// or of another provider. Each event has its effect once, however often it is delivered.
//
//	func main() {
//		events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//		events.OnPayment(charges.Orders(paid))
//		if err := paghooks.Run(":8080", events, &charges.Daily{Orders: paid}); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	// paid sets the order to the sum of its charges, whatever happened to them.
//	func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
//		set, err := tx.Exec(ctx, `update orders set paid = $1 where id = $2 or checkout = $3`, o.Paid, o.Reference, o.Checkout)
//		return set.RowsAffected(), err
//	}
//
// [Run] is short because it decides for you. The page docs/by-hand.md has the same program without it, for an
// application that has a router, a pool or a main function already. Nothing can be done only through Run.
//
// # The packages
//
//   - asaas and zeltapay are the providers: their events, typed, and their verification. asaas/charges keeps a row for each
//     charge, and sets orders to the sum of their charges.
//   - idem is the engine. It stores an event, answers, and runs the handler and the record that the event is done in one
//     transaction. It knows no provider.
//   - idem/health reports whether all is well. The commands idem and asaas-queue, and package console, are for the
//     person on call.
//   - asaas/asaastest and zeltapay/zeltapaytest deliver events to your tests as the providers do.
package paghooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
)

// Run runs a program until SIGINT or SIGTERM, and returns nil then. It reads DATABASE_URL from the environment,
// connects to that Postgres, makes the tables, and serves at addr:
//
//	POST /webhooks/NAME     the deliveries to each dispatcher: /webhooks/asaas, for example
//	GET  /health/webhooks   200 while all is well, else 503: see package health
//
// Each of parts is one of these:
//
//   - a dispatcher, or another [idem.Source], whose events are stored, answered, and processed by workers;
//   - a [charges.Daily], [charges.Unmatched] or [charges.Overpaid], whose DB is set where it is nil. The Client of a Daily is
//     made of ASAAS_API_KEY; without that variable the Daily is left out;
//   - a [health.Notifier], whose DB and Health are set where they are nil;
//   - another [idem.Part] or [health.Part], such as a canary.
//
// Where Asaas's charges are not read daily, health says what is not known for that reason.
//
// Run prunes daily, and stops as [idem.Serve] does: deliveries and running handlers come to their ends. It returns an
// error if a variable is missing, if it cannot connect, make the tables or listen, and if a part fails. The role of
// DATABASE_URL makes the tables, and owns them. If it may not, call idem.Migrate and charges.Migrate in a release step,
// with a role that may.
func Run(addr string, parts ...any) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	address := os.Getenv("DATABASE_URL")
	if address == "" {
		return errors.New("paghooks: DATABASE_URL is not set: give the address of your Postgres, postgres://user:password@host/database")
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return fmt.Errorf("paghooks: DATABASE_URL: %w", err)
	}
	defer pool.Close()
	p := program{pool: pool, mux: http.NewServeMux(), names: make(map[string]bool)}
	for _, part := range parts {
		if err := p.add(part); err != nil {
			return err
		}
	}
	if p.names["asaas"] && !p.reads {
		p.health = append(p.health, unread{})
	}
	if err := p.migrate(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	healthy := health.New(p.health...)
	for _, n := range p.notifiers {
		n.Health = cmp.Or(n.Health, healthy)
	}
	p.mux.Handle("GET /health/webhooks", healthy)
	return idem.Serve(ctx, &http.Server{Addr: addr, Handler: p.mux}, p.parts...)
}

// program holds the parts of a Run.
type program struct {
	pool      *pgxpool.Pool
	mux       *http.ServeMux
	parts     []idem.Part
	health    []health.Part
	notifiers []*health.Notifier
	names     map[string]bool // of the sources
	charges   bool            // the tables of package charges are needed
	reads     bool            // a charges.Daily runs
}

// add adds a part.
func (p *program) add(part any) error {
	switch part := part.(type) {
	case idem.Source:
		name := part.Name()
		if p.names[name] {
			return fmt.Errorf("paghooks: Run got two sources of the name %s, whose deliveries would have one address: give one dispatcher all tokens", name)
		}
		p.names[name] = true
		_, isAsaas := part.(*asaas.Dispatcher)
		p.charges = p.charges || isAsaas
		inbox := idem.NewInbox(p.pool, part)
		p.mux.Handle("POST /webhooks/"+name, inbox)
		return p.run(inbox)
	case *charges.Daily:
		part.DB = cmp.Or(part.DB, p.pool)
		if err := p.setClient(part); err != nil || part.Client == nil {
			return err
		}
		p.charges, p.reads = true, true
	case *charges.Unmatched:
		if part.DB == nil {
			part.DB = p.pool
		}
	case *charges.Overpaid:
		if part.DB == nil {
			part.DB = p.pool
		}
	case *health.Notifier:
		part.DB = cmp.Or(part.DB, p.pool)
		p.notifiers = append(p.notifiers, part)
	}
	return p.run(part)
}

// run has idem.Serve run a part, and health ask it.
func (p *program) run(part any) error {
	runs, isPart := part.(idem.Part)
	says, isHealth := part.(health.Part)
	if isPart {
		p.parts = append(p.parts, runs)
	}
	if isHealth {
		p.health = append(p.health, says)
	}
	if !isPart && !isHealth {
		return fmt.Errorf("paghooks: Run got a %T: give it dispatchers, and parts that have a method Run or Examine", part)
	}
	return nil
}

// setClient makes the client of the key in the environment, if there is one. The key's prefix names the environment.
func (p *program) setClient(d *charges.Daily) (err error) {
	key := os.Getenv("ASAAS_API_KEY")
	if d.Client != nil || key == "" {
		return nil
	}
	environment := asaas.Production
	if strings.HasPrefix(key, "$aact_hmlg_") {
		environment = asaas.Sandbox
	}
	if d.Client, err = asaas.NewClient(environment, key); err != nil {
		return fmt.Errorf("paghooks: ASAAS_API_KEY: %w", err)
	}
	return nil
}

// migrate makes the tables.
func (p *program) migrate(ctx context.Context) error {
	err := idem.Migrate(ctx, p.pool)
	if err == nil && p.charges {
		err = charges.Migrate(ctx, p.pool)
	}
	if fault, ok := errors.AsType[*pgconn.PgError](err); ok && fault.Code == "42501" { // insufficient_privilege
		config := p.pool.Config().ConnConfig
		return fmt.Errorf("paghooks: the role %s may not make or change tables: grant it create on the first schema of its search_path, "+
			"or call idem.Migrate and charges.Migrate in a release step, with a role that may: see docs/deploy.md: %w", config.User, err)
	}
	if err != nil {
		return fmt.Errorf("paghooks: making the tables: %w", err)
	}
	return nil
}

// unread stands for a charges.Daily that does not run.
type unread struct{}

// Examine reports that missed events are not noticed.
func (unread) Examine(context.Context, check.Limits) []check.Result {
	return []check.Result{{
		Source: "asaas", Name: "reconcile", Healthy: true,
		Says: "no charges are read, and missed events are not noticed: give Run a charges.Daily, and set ASAAS_API_KEY, " +
			"in single quotes where a shell reads it",
	}}
}
