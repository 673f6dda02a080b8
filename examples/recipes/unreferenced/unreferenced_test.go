package unreferenced

import (
	"errors"
	"fmt"
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
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Made up: no person's.
const cpfOfAna, cpfOfBia, cpfOfNobody = "11144477735", "52998224725", "39053344705"

func newShop(t *testing.T) (*pgxpool.Pool, *asaastest.Fake) {
	t.Helper()
	pool, fake := idemtest.Pool(t), asaastest.New()
	t.Cleanup(fake.Close)
	err := errors.Join(idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool), charges.Filled(t.Context(), pool, "", time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, pool, Tables)
	testkit.Exec(t, pool, `insert into customers values ('ana', '`+cpfOfAna+`'), ('bia', '`+cpfOfBia+`'), ('bia-2', '`+cpfOfBia+`')`)
	testkit.Exec(t, pool, `insert into orders values ('order-1', 'ana')`)
	testkit.Exec(t, pool, `insert into subscriptions values ('sub_1', 'ana')`)
	for id, cpf := range map[string]string{"cus_ana": "111.444.777-35", "cus_bia": cpfOfBia, "cus_nobody": cpfOfNobody, "cus_masked": "***.444.777-**"} {
		fake.AddCustomer(asaas.Customer{ID: id, CpfCnpj: value.Of(cpf)})
	}
	return pool, fake
}

// pay has a charge of R$ 100.00 be paid, and returns its id.
func pay(t *testing.T, pool *pgxpool.Pool, fake *asaastest.Fake, change func(*asaas.Payment)) string {
	t.Helper()
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	change(&c.Payment)
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Handler(nil))
	for _, body := range [][]byte{c.Created(), c.Received()} {
		fake.Emit(body)
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return idem.Dispatch(t.Context(), tx, events, asaas.Identify(body)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return c.Payment.ID
}

func customerOf(t *testing.T, pool *pgxpool.Pool, charge string) string {
	t.Helper()
	return testkit.QueryOne[string](t, pool, `select coalesce(customer, 'nobody') || ' by ' || coalesce(found_by, 'nothing') from charge_customers where charge = $1`, charge)
}

func TestAChargeFindsItsCustomer(t *testing.T) {
	t.Parallel()
	pool, fake := newShop(t)
	type row struct {
		reason        string
		change        func(*asaas.Payment)
		before, after string // Asaas is asked
		charge        string
	}
	rows := []row{
		{reason: "by its order", change: func(p *asaas.Payment) { p.ExternalReference, p.Customer = value.Of("order-1"), "cus_nobody" }, before: "ana by order", after: "ana by order"},
		{reason: "by its subscription", change: func(p *asaas.Payment) { p.Subscription, p.Customer = value.Of("sub_1"), "cus_removed" }, before: "ana by subscription", after: "ana by subscription"},
		{reason: "by the CPF of its customer at Asaas", change: func(p *asaas.Payment) { p.Customer = "cus_ana" }, before: "nobody by nothing", after: "ana by customer"},
		{reason: "two customers have the CPF", change: func(p *asaas.Payment) { p.Customer = "cus_bia" }, before: "nobody by nothing", after: "nobody by nothing"},
		{reason: "no customer has the CPF", change: func(p *asaas.Payment) { p.Customer = "cus_nobody" }, before: "nobody by nothing", after: "nobody by nothing"},
		{reason: "the CPF is masked", change: func(p *asaas.Payment) { p.Customer = "cus_masked" }, before: "nobody by nothing", after: "nobody by nothing"},
		{reason: "the customer was removed", change: func(p *asaas.Payment) { p.Customer = "cus_removed" }, before: "nobody by nothing", after: "nobody by nothing"},
		{reason: "another system's order", change: func(p *asaas.Payment) { p.ExternalReference, p.Customer = value.Of("ERP-7"), "cus_ana" }, before: "nobody by nothing", after: "ana by customer"},
	}
	for i := range rows {
		rows[i].charge = pay(t, pool, fake, rows[i].change)
		if got := customerOf(t, pool, rows[i].charge); got != rows[i].before {
			t.Errorf("%s: before Asaas is asked %s, want %s", rows[i].reason, got, rows[i].before)
		}
	}
	if n, err := AskAsaas(t.Context(), pool, fake.Client()); n != 1 || err != nil {
		t.Errorf("%d customers were found, %v; want 1", n, err)
	}
	var orphans []string
	for _, r := range rows {
		got := customerOf(t, pool, r.charge)
		if got != r.after {
			t.Errorf("%s: %s, want %s", r.reason, got, r.after)
		}
		if got == "nobody by nothing" {
			orphans = append(orphans, r.charge)
		}
	}
	compareOrphans(t, pool, orphans)

	testkit.Exec(t, pool, `insert into settled_by_hand values ($1, 'given back by Pix', 'the accountant')`, orphans[0])
	compareOrphans(t, pool, orphans[1:])
	if c := Orphans(pool).Examine(t.Context(), check.Limits{}); len(c) != 1 || c[0].Healthy || !strings.Contains(c[0].Says, "3") {
		t.Errorf("health says %+v", c)
	}

	fake.InjectAPI(asaastest.APIForbidden) // nobody is asked twice a day
	if n, err := AskAsaas(t.Context(), pool, fake.Client()); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	// The shop learns to know the person, and a day later the charge is theirs.
	testkit.Exec(t, pool, `insert into customers values ('caio', '`+cpfOfNobody+`')`)
	testkit.Exec(t, pool, `update asaas_customers set asked = asked - interval '1 day'`)
	fake.InjectAPI() // the fault above waits for the next call
	_, _ = AskAsaas(t.Context(), pool, fake.Client())
	if n, err := AskAsaas(t.Context(), pool, fake.Client()); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := customerOf(t, pool, rows[4].charge); got != "caio by customer" {
		t.Error(got)
	}
}

func compareOrphans(t *testing.T, pool *pgxpool.Pool, want []string) {
	t.Helper()
	list, err := Orphans(pool).List(t.Context(), 100)
	var got []string
	for _, c := range list {
		got = append(got, c.ID)
	}
	slices.Sort(got)
	if slices.Sort(want); err != nil || !slices.Equal(got, want) {
		t.Errorf("the orphans are %v, %v; want %v", got, err, want)
	}
}

// The shop's own table of customers has CPFs. No other place gets one.
func TestNoCPFIsStoredOrShown(t *testing.T) {
	t.Parallel()
	pool, fake := newShop(t)
	charge := pay(t, pool, fake, func(p *asaas.Payment) { p.Customer = "cus_nobody" })
	if _, err := AskAsaas(t.Context(), pool, fake.Client()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"asaas_customers", "asaas_charges", "charge_customers"} {
		all := testkit.QueryOne[string](t, pool, `select coalesce(string_agg(x::text, ' '), '') from `+table+` x`)
		if strings.Contains(all, cpfOfNobody) || !strings.Contains(all, "cus_nobody") && !strings.Contains(all, charge) {
			t.Errorf("%s has %s", table, all)
		}
	}
	c, err := fake.Client().Customer(t.Context(), "cus_nobody")
	if text := fmt.Sprintf("%v %+v", c, c); err != nil || strings.Contains(text, cpfOfNobody) || c.CpfCnpj.Or("") != cpfOfNobody {
		t.Errorf("%s, %v", text, err)
	}
}
