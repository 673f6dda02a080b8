package charges_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

const orderTable = `create table orders (id text primary key, paid numeric not null default 0);
	insert into orders values ('order-1')`

// shop books what a shop would: a ledger, and the order by the charge's reference.
func shop(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	if err := book(ctx, tx, c); err != nil || c.Paid().IsZero() {
		return err
	}
	_, err := tx.Exec(ctx, `update orders set paid = paid + $1 where id = $2`, c.Paid(), c.After.ExternalReference)
	return err
}

// holds is what all tables say about an order and its charge.
const holds = `select concat_ws(' ', c.status, c.deleted::text, c.paid::numeric(12,2), c.received::numeric(12,2),
		'ledger', (select sum(paid)::numeric(12,2) || ' ' || sum(received)::numeric(12,2) from ledger l where l.charge = c.id and l.scope = c.scope),
		'order', (select paid::numeric(12,2) from orders where id = c.external_reference),
		'sums', (select paid::numeric(12,2) || ' ' || received::numeric(12,2) from asaas_charge_sums where kind = 'reference' and name = c.external_reference))
	from asaas_charges c`

func endOf(life asaastest.Life) string {
	return fmt.Sprintf("%s %t %s %s ledger %[3]s %[4]s order %[3]s sums %[3]s %[4]s", life.Status, life.Deleted, life.Paid, life.Received)
}

// The end of a life is true whatever came in whichever order: each event twice, any one but the last never, in seconds of
// their own, all in one second, and all in one second with ids that have no number.
func TestEveryLifeEndsTrueInAnyOrder(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if _, err := pool.Exec(t.Context(), orderTable); err != nil {
		t.Fatal(err)
	}
	events := newEvents(shop)
	inEveryOrder(t, pool, func(tx pgx.Tx, life asaastest.Life, came [][]byte) error {
		for _, body := range came {
			if err := dispatch(t.Context(), tx, events, "", body); err != nil {
				return err
			}
		}
		var got string
		if err := tx.QueryRow(t.Context(), holds).Scan(&got); err != nil || got != endOf(life) {
			return fmt.Errorf("the tables hold %q, want %q: %w", got, endOf(life), err)
		}
		return nil
	})
}

// inEveryOrder runs a test with the events of each life in many orders, each event twice, without any one but the
// last, and in each spelling of their times. The transaction is rolled back.
func inEveryOrder(t *testing.T, pool *pgxpool.Pool, test func(tx pgx.Tx, life asaastest.Life, came [][]byte) error) {
	t.Helper()
	ran := 0
	for _, life := range asaastest.Lives("order-1") {
		for spelling, spell := range spellings {
			bodies := spell(life.Bodies)
			for lost := -1; lost < len(bodies)-1; lost++ {
				came, most := indexes(len(bodies)), mostOrders
				if lost >= 0 {
					came = slices.Delete(came, lost, lost+1)
				}
				for _, order := range orders(came, most) {
					order = append(order, order...)
					tx, err := pool.Begin(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					var all [][]byte
					for _, n := range order {
						all = append(all, bodies[n])
					}
					if err := test(tx, life, all); err != nil {
						t.Errorf("%s, %s, in the order %v: %v", life.Name, spelling, order, err)
					}
					_ = tx.Rollback(t.Context())
					ran++
				}
			}
		}
	}
	t.Logf("%d runs", ran)
}

// mostOrders is the number of orders of one life that are tried: the given one and its reverse, or with the build tag
// long all of three events, and eight of more.
var mostOrders = testkit.Size(2, 8)

// spellings are the ways in which the events of a life tell their order.
var spellings = map[string]func([][]byte) [][]byte{
	"in seconds of their own": func(bodies [][]byte) [][]byte { return bodies },
	"all in one second": func(bodies [][]byte) [][]byte {
		return respelled(bodies, func(int) map[string]string { return map[string]string{"dateCreated": "2026-08-08 10:00:00"} })
	},
	"all in one second, without numbers": func(bodies [][]byte) [][]byte {
		return respelled(bodies, func(n int) map[string]string {
			return map[string]string{"dateCreated": "2026-08-08 10:00:00", "id": fmt.Sprintf("evt_%03d", n)}
		})
	},
}

func respelled(bodies [][]byte, with func(n int) map[string]string) (out [][]byte) {
	for n, body := range bodies {
		fields := make(map[string]json.RawMessage)
		if err := json.Unmarshal(body, &fields); err != nil {
			panic(err)
		}
		for name, text := range with(n) {
			fields[name], _ = json.Marshal(text)
		}
		body, _ = json.Marshal(fields)
		out = append(out, body)
	}
	return out
}

// orders returns all orders of events; of more than most it returns so many: the given one, its reverse, and
// others that are the same in each run.
func orders(given []int, most int) (all [][]int) {
	if len(given) <= 3 && most >= 6 || len(given) <= 4 && most >= 24 {
		return permuted(nil, given)
	}
	reverse := slices.Clone(given)
	slices.Reverse(reverse)
	all = [][]int{given, reverse}
	for random := rand.New(rand.NewPCG(1, uint64(len(given)))); len(all) < most; {
		order := slices.Clone(given)
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		all = append(all, order)
	}
	return all
}

func permuted(first, rest []int) (all [][]int) {
	if len(rest) == 0 {
		return [][]int{first}
	}
	for i, n := range rest {
		all = append(all, permuted(append(slices.Clone(first), n), slices.Delete(slices.Clone(rest), i, i+1))...)
	}
	return all
}

// Through HTTP, in both modes; the build tag long tries others.
func TestLivesEndTrueThroughEitherReceiver(t *testing.T) {
	t.Parallel()
	inAnyOrder(t, "a card, given back before its money came")
}

func inAnyOrder(t *testing.T, names ...string) {
	for _, life := range asaastest.Lives("order-1") {
		if slices.Contains(names, life.Name) {
			t.Run(life.Name, func(t *testing.T) {
				t.Parallel()
				idemtest.AnyOrder(t, newShop(t), life.Requests("/webhooks/asaas", "token"), hasEnded(life))
			})
		}
	}
}

func newShop(t *testing.T) func(*pgxpool.Pool) idem.Source {
	return func(pool *pgxpool.Pool) idem.Source {
		migrate(t, pool)
		if _, err := pool.Exec(t.Context(), orderTable); err != nil {
			t.Error(err)
		}
		return newEvents(shop)
	}
}

func hasEnded(life asaastest.Life) func(context.Context, *pgxpool.Pool) error {
	return func(ctx context.Context, pool *pgxpool.Pool) error {
		var got string
		if err := pool.QueryRow(ctx, holds).Scan(&got); err != nil {
			return err
		}
		if got != endOf(life) {
			return fmt.Errorf("the tables hold %q, want %q", got, endOf(life))
		}
		return nil
	}
}

// The sandbox and production may have one id: neither sees the other's charge.
func TestAnAccountThatIsApartMayHaveTheIDsOfAnother(t *testing.T) {
	t.Parallel()
	pool, events := newTables(t), newEvents(book)
	if err := charges.Apart(t.Context(), pool, "shop-2"); err != nil {
		t.Fatal(err)
	}
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	bodies := [][]byte{charge.Created(), charge.Received(), charge.Refunded()}
	for _, scoped := range []struct {
		scope  string
		bodies [][]byte
	}{{"shop-1", bodies}, {"shop-2", bodies[:2]}} {
		for _, body := range scoped.bodies {
			if err := handle(t, pool, events, scoped.scope, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	const each = `select string_agg(concat_ws(' ', scope, status, paid, (select sum(paid) from ledger l where l.scope = c.scope)), ', ' order by scope) from asaas_charges c`
	if got, want := query(t, pool, each), "shop-1 REFUNDED 0.00 0.00, shop-2 RECEIVED 100.00 100.00"; got != want {
		t.Errorf("the table holds %q, want %q", got, want)
	}
}

// Eight writers deliver a life at once, each event three times, and then the next: they meet on one row.
func TestWritersAtTheSameTimeLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	pool, events := newTables(t), newEvents(book)
	lives := asaastest.Lives("")
	work := make(chan []byte)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for body := range work {
				if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return dispatch(t.Context(), tx, events, "", body) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, life := range lives {
		for _, n := range random.Perm(3 * len(life.Bodies)) {
			work <- life.Bodies[n%len(life.Bodies)]
		}
	}
	close(work)
	writers.Wait()
	for _, life := range lives {
		got := query(t, pool, `select concat_ws(' ', status, paid, received, (select sum(paid) || ' ' || sum(received) from ledger where charge = c.id)) from asaas_charges c where id = $1`,
			life.Charge.Payment.ID)
		if want := fmt.Sprintf("%s %s %s %[2]s %[3]s", life.Status, life.Paid, life.Received); got != want {
			t.Errorf("%s: the tables hold %q, want %q", life.Name, got, want)
		}
	}
}

// Whatever happens to a charge, the sum of its changes is its row, at each moment, and the row is as the newest event that
// came has it.
func TestTheSumOfChangesIsTheRow(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	testkit.Random(t, 100, func(r *rand.Rand) {
		bodies := randomLife(r)
		order := r.Perm(len(bodies))
		for range r.IntN(5) { // again
			order = append(order, r.IntN(len(bodies)))
		}
		order = order[r.IntN(len(order)):] // the others are lost
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		newest := -1
		for _, n := range order {
			newest = max(newest, n)
			if err := dispatch(t.Context(), tx, newEvents(book), "", bodies[n]); err != nil {
				t.Fatal(err)
			}
			var equal bool
			var event string
			const sums = `select paid = (select sum(paid) from ledger) and received = (select sum(received) from ledger), event from asaas_charges`
			if err := tx.QueryRow(t.Context(), sums).Scan(&equal, &event); err != nil || !equal || event != asaas.Identify(bodies[newest]).ID {
				t.Fatalf("after %v of the order %v: sums are equal: %v, the row has %s: %v", n, order, equal, event, err)
			}
		}
	})
}

// randomLife are the events of a charge to which anything happens that can.
func randomLife(r *rand.Rand) [][]byte {
	c := asaastest.NewCharge(testkit.Pick[asaas.BillingType](r, "PIX", "BOLETO", "CREDIT_CARD"), asaas.Cents(500+r.Int64N(1e7)))
	bodies := [][]byte{c.Created()}
	steps := map[string]func() []byte{
		"overdue": c.Overdue, "confirmed": c.Confirmed, "received": c.Received, "cash": c.ReceivedInCash, "undone": c.CashUndone,
		"refunded": c.Refunded, "done": c.RefundDone, "denied": c.RefundDenied, "canceled": c.RefundCanceled, "chargeback": c.ChargebackRequested,
		"dispute": c.ChargebackDispute, "won": c.AwaitingChargebackReversal, "deleted": c.Deleted, "restored": c.Restored,
		"partly": func() []byte { return c.PartiallyRefunded(asaas.Cents(100)) }, "asked": func() []byte { return c.RefundAsked(asaas.Cents(100)) },
		"asked all": func() []byte { return c.RefundAsked(c.Payment.Value) },
	}
	names := slices.Sorted(maps.Keys(steps))
	for range r.IntN(31) {
		name := names[r.IntN(len(names))]
		was := *c
		func() {
			defer func() {
				if recover() != nil { // that cannot happen now
					*c = was
				}
			}()
			bodies = append(bodies, steps[name]())
		}()
	}
	return bodies
}

func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}
