package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/value"
)

// Whoever writes to the merchant has no id of an event.
func TestAPersonsChargesAreFoundByTheCustomerAndByTheReference(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	conn := a.charges(t)
	if err := charges.Filled(t.Context(), conn, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	a.env["ASAAS_API_KEY"] = "" // Asaas is not asked
	for _, c := range []struct{ customer, reference string }{{"cus_1", "order-1"}, {"cus_1", "order-2"}, {"cus_2", "order-3"}} {
		charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(12990))
		charge.Payment.ID = "pay_" + c.reference
		charge.Payment.Customer, charge.Payment.ExternalReference = c.customer, value.Of(c.reference)
		charge.Created()
		charge.Received()
		copied(t, conn, "", charge.Payment)
	}
	for name, want := range map[string]string{"cus_1": "pay_order-1 pay_order-2", "order-3": "pay_order-3"} {
		status, out, complaints := a.queue(t, "find", name)
		var found []string
		for _, id := range []string{"pay_order-1", "pay_order-2", "pay_order-3"} {
			if strings.Contains(out, " "+id+" ") {
				found = append(found, id)
			}
		}
		if status != 0 || complaints != "" || strings.Join(found, " ") != want || !strings.Contains(out, "  idem show -entity pay_order-") {
			t.Errorf("find %s: exit status %d, finds %v, prints\n%s%s", name, status, found, out, complaints)
		}
	}
	if status, out, _ := a.queue(t, "find", "order-3", "-json"); status != 0 || !strings.HasPrefix(out, `{"account":"","charge":"pay_order-3","customer":"cus_2","external_reference":"order-3","created":"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("exit status %d, prints %s", status, out)
	}
	if status, _, _ := a.queue(t, "find", "nobody"); status != 3 {
		t.Errorf("of nobody: exit status %d", status)
	}
	if _, err := charges.Find(t.Context(), conn, "", 1); err == nil {
		t.Error("Find finds the charges that have no name")
	}
}

func TestPaidChargesThatMatchNothingAreListed(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	conn := a.charges(t)
	if err := charges.Filled(t.Context(), conn, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	a.env["ASAAS_API_KEY"] = ""
	if _, err := conn.Exec(t.Context(), `create table orders (id text primary key); insert into orders values ('order-1')`); err != nil {
		t.Fatal(err)
	}
	known := "-known=exists (select from orders o where o.id = c.external_reference)"
	for _, reference := range []string{"order-1", "order-2", ""} {
		if status, _, complaints := a.queue(t, "unmatched", known); reference == "order-2" && status != 3 {
			t.Errorf("where all match: exit status %d, %s", status, complaints)
		}
		charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(12990))
		charge.Payment.ExternalReference = value.Of(reference)
		charge.Created()
		charge.Received()
		copied(t, conn, "", charge.Payment)
	}
	status, out, complaints := a.queue(t, "unmatched", known, "-limit=1")
	if status != 4 || strings.Contains(out, "order-1") || strings.Count(out, "received") != 1 || !strings.Contains(complaints, "and 1 more") {
		t.Errorf("exit status %d, prints\n%s%s", status, out, complaints)
	}
	if status, _, complaints := a.queue(t, "unmatched"); status != 2 || !strings.Contains(complaints, "-known is not given") {
		t.Errorf("without -known: exit status %d, %s", status, complaints)
	}
}

// As the error of the event that was parked says: a shop's first events are of charges from before.
func TestFilledHasTheFirstEventsOfANewShopDone(t *testing.T) {
	t.Parallel()
	for scope, args := range map[string][]string{"": {"filled"}, "São Paulo": {"filled", "-scope", "São Paulo"}} {
		a := newAccount(t)
		conn := a.charges(t)
		a.env["ASAAS_API_KEY"] = "" // Asaas is not asked
		old := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(12990))
		old.Payment.DateCreated = "2021-01-01"
		old.Created()
		copying := func() error {
			return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				_, err := charges.CopyRead(t.Context(), tx, scope, &old.Payment, time.Date(2026, 8, 8, 0, 0, 0, 0, asaas.Brasilia()))
				return err
			})
		}
		err := copying()
		if says := strings.ReplaceAll("run asaas-queue "+strings.Join(args, " ")+" once", "São Paulo", "'São Paulo'"); err == nil || !strings.Contains(err.Error(), says) {
			t.Fatalf("%q: before: %v", scope, err)
		}
		if status, out, _ := a.queue(t, args...); status != 2 || out != "" {
			t.Errorf("%q: where nobody is asked: exit status %d, %q", scope, status, out)
		}
		if status, _, _ := a.queueAnswering(t, new("n\n"), args...); status != 1 || copying() == nil {
			t.Errorf("%q: declined: exit status %d", scope, status)
		}
		if status, out, complaints := a.queue(t, append(args, "-yes")...); status != 0 || out != "next: the events that were parked for it: idem requeue -source asaas -state parked\n" {
			t.Errorf("%q: exit status %d, %q, %q", scope, status, out, complaints)
		}
		if err := copying(); err != nil {
			t.Errorf("%q: after: %v", scope, err)
		}
	}
}
