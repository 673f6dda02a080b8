package orms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

var recipes = map[string]func(context.Context, pgx.Tx, charges.Order) (int64, error){
	"GORM": PaidWithGORM, "ent": PaidWithEnt, "bun": PaidWithBun, "database/sql": PaidWithSQL,
}

// shop makes the tables, with order-1, and a dispatcher with a recipe.
func shop(ctx context.Context, pool *pgxpool.Pool, paid func(context.Context, pgx.Tx, charges.Order) (int64, error)) (*asaas.Dispatcher, error) {
	err := charges.Migrate(ctx, pool)
	for _, statement := range []string{tables, `insert into orders (reference) values ('order-1')`} {
		_, failed := pool.Exec(ctx, statement)
		err = errors.Join(err, failed)
	}
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Orders(paid))
	return events, errors.Join(err, charges.Filled(ctx, pool, "", time.Time{}))
}

// received is the event of a Pix of 100.00 for an order.
func received(reference string) []byte {
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	c.Payment.ExternalReference = value.Of(reference)
	c.Created()
	return c.Received()
}

func paidIs(want asaas.Money) func(context.Context, *pgxpool.Pool) error {
	return func(ctx context.Context, pool *pgxpool.Pool) error {
		var paid asaas.Money
		err := pool.QueryRow(ctx, `select paid + paid_cents / 100.0 from orders`).Scan(&paid)
		if err == nil && paid.Cmp(want) != 0 {
			err = fmt.Errorf("order-1 is paid with %s, want %s", paid, want)
		}
		return err
	}
}

func TestEachRecipeIsRightAboutMoney(t *testing.T) {
	t.Parallel()
	// The sum is charges.Orders', which is tried with every life; what is tried here is that each library stores it.
	const one = "a card, given back before its money came"
	lives := slices.DeleteFunc(asaastest.Lives("order-1"), func(life asaastest.Life) bool { return life.Name != one })
	if len(lives) != 1 {
		t.Fatalf("%d lives, want one", len(lives))
	}
	for name, paid := range recipes {
		for _, life := range lives {
			t.Run(name+", "+life.Name, func(t *testing.T) {
				t.Parallel()
				source := func(pool *pgxpool.Pool) idem.Source {
					events, err := shop(t.Context(), pool, paid)
					if err != nil {
						t.Fatal(err)
					}
					return events
				}
				idemtest.AnyOrder(t, source, life.Requests("/webhooks/asaas", "token"), paidIs(life.Paid))
			})
		}
	}
}

func TestEachRecipeHasItsEffectExactlyOnce(t *testing.T) {
	t.Parallel()
	body := received("order-1")
	for name, paid := range recipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := func(pool *pgxpool.Pool) idem.Source {
				events, err := shop(t.Context(), pool, paid)
				if err != nil {
					t.Fatal(err)
				}
				return events
			}
			deliveries := []*http.Request{asaastest.Request("/webhooks/asaas", "token", body)}
			idemtest.ExactlyOnceInbox(t, source, deliveries, paidIs(asaas.Cents(10000)))
		})
	}
}

// An update that changes no row is an error of each recipe, so that the event is tried again.
func TestAnOrderThatIsNotStoredFailsTheEvent(t *testing.T) {
	t.Parallel()
	body := received("order-2")
	for name, paid := range recipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := openPool(t, pgx.QueryExecModeCacheStatement)
			events, err := shop(t.Context(), pool, paid)
			if err != nil {
				t.Fatal(err)
			}
			p := idem.NewInbox(pool, events)
			p.WorkFirst = true
			p.Logger = testkit.NoWarnings(t, "no order was set")
			outcome, err := p.Accept(t.Context(), asaas.Identify(body))
			if outcome != idem.Retrying || err == nil || !strings.Contains(err.Error(), "no order was set") {
				t.Errorf("%s, %v", outcome, err)
			}
		})
	}
}

func TestGORMAndIdemShareOnePool(t *testing.T) {
	t.Parallel()
	pool := openPool(t, pgx.QueryExecModeCacheStatement)
	events, err := shop(t.Context(), pool, PaidWithGORM)
	if err != nil {
		t.Fatal(err)
	}
	g, err := OpenGORM(pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Create(&Order{Reference: "order-2"}).Error; err != nil {
		t.Fatal(err)
	}
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = testkit.NoWarnings(t)
	if _, err := inbox.Accept(t.Context(), asaas.Identify(received("order-2"))); err != nil {
		t.Fatal(err)
	}
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var o Order
	if err := g.Where("reference = ?", "order-2").First(&o).Error; err != nil || o.Paid.Cmp(asaas.Cents(10000)) != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}
