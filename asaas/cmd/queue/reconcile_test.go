package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestReconcilePrintsWhatDiffersAndChangesNothing(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.wait = atOnce
	charge := func() *asaastest.Charge {
		c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(12990))
		a.fake.Emit(c.Created())
		return c
	}
	window := []string{"reconcile", "-since", "2026-08-05T00:00:00-03:00", "-until", "2026-08-20T00:00:00-03:00"}
	if status, _, complaints := a.queue(t, window...); status != 2 || !strings.Contains(complaints, "DATABASE_URL is not set") {
		t.Errorf("without a database: exit status %d, %q", status, complaints)
	}
	a.env["DATABASE_URL"] = idemtest.URL(t)
	if status, _, complaints := a.queue(t, window...); status != 1 || !strings.Contains(complaints, "no table asaas_charges") {
		t.Errorf("without a table: exit status %d, %q", status, complaints)
	}
	if status, _, complaints := a.queue(t, "reconcile"); status != 2 || !strings.Contains(complaints, "-since is not given") {
		t.Errorf("without -since: exit status %d, %q", status, complaints)
	}

	conn := a.charges(t)
	if status, out, complaints := a.queue(t, "reconcile", "-since", "2026-08-05", "-until", "2026-08-01"); status != 1 || out != "" || !strings.Contains(complaints, "ends before it begins") {
		t.Errorf("of a gap that is none: exit status %d, prints %q, %q", status, out, complaints)
	}
	if err := charges.Filled(t.Context(), conn, "", time.Date(2026, 8, 5, 0, 0, 0, 0, asaas.Brasilia())); err != nil {
		t.Fatal(err)
	}
	same, paid, fresh, moved := charge(), charge(), charge(), charge()
	moved.Payment.DueDate = "2026-12-24"
	for _, c := range []*asaastest.Charge{same, paid, moved} {
		copied(t, conn, "", c.Payment)
	}
	a.fake.Emit(paid.Received(), fresh.Received())
	old := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(5000))
	old.Payment.DateCreated = "2026-08-04" // before the table is complete
	a.fake.Emit(old.Created())
	gone := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(5000))
	gone.Created() // which the fake is not told
	copied(t, conn, "", gone.Payment)

	rows := func() (text string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `select string_agg(c::text, ' ' order by id) from asaas_charges c`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := rows()
	status, out, complaints := a.queue(t, window...)
	for _, line := range []string{
		paid.Payment.ID + ": PENDING, paid 0.00, received 0.00 -> RECEIVED, paid 129.90, received 129.90\n",
		fresh.Payment.ID + ": no row -> RECEIVED, paid 129.90, received 129.90\n",
		moved.Payment.ID + ": PENDING, paid 0.00, received 0.00; its days, reference or fees differ\n",
		gone.Payment.ID + ": Asaas does not show it: ",
		old.Payment.ID + ": it cannot be copied: ",
		"3 would change, 1 gone, 1 failed; nothing was changed\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in:\n%s", line, out)
		}
	}
	if status != 4 || complaints != "" || strings.Contains(out, same.Payment.ID) || rows() != before {
		t.Errorf("exit status %d, %q; rows changed: %t; prints\n%s", status, complaints, rows() != before, out)
	}

	status, out, _ = a.queue(t, append(window, "-json")...)
	for _, part := range []string{
		`{"step":"changed","charge":"` + paid.Payment.ID + `","before":{"status":"PENDING",`, `{"step":"gone","charge":"` + gone.Payment.ID + `"}`,
		`{"step":"failed","charge":"` + old.Payment.ID + `","error":`, `{"step":"done",`,
	} {
		if status != 4 || !strings.Contains(out, part) {
			t.Errorf("exit status %d, %q is not in:\n%s", status, part, out)
		}
	}
}

func TestReconcileGoesOnAtTheCursorThatItPrints(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.wait = atOnce
	conn := a.charges(t)
	if err := charges.Filled(t.Context(), conn, "shop", time.Time{}); err != nil {
		t.Fatal(err)
	}
	want := make(map[string]bool)
	for n := range 12 { // each is asked for by a call of its own: no list has it
		c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(100))
		c.Created() // which the fake is not told
		p := c.Payment
		p.DateCreated = asaas.Date(fmt.Sprintf("2026-07-%02d", n+1))
		copied(t, conn, "shop", p)
		want[p.ID] = true
	}
	args := []string{"reconcile", "-scope", "shop", "-until", "2026-08-20", "-calls", "10"}
	first, cursor := append(slices.Clone(args), "-since", "2026-08-05"), ""
	if status, out, _ := a.queue(t, first...); status != 1 || !strings.Contains(out, "\npaused: 0 charges read with 10 calls; ") {
		t.Errorf("exit status %d, prints\n%s", status, out)
	} else if _, cursor, _ = strings.Cut(out, "next: asaas-queue reconcile -sandbox -scope shop -resume-at '"); cursor == "" {
		t.Fatalf("no next step in\n%s", out)
	}
	_, out, _ := a.queue(t, first...)
	status, more, complaints := a.queue(t, append(args, "-resume-at", strings.TrimSuffix(cursor, "'\n"))...)
	if status != 4 || !strings.Contains(more, "\ndone: ") {
		t.Errorf("exit status %d, prints\n%s%s", status, more, complaints)
	}
	for id := range want {
		if !strings.Contains(out+more, id) {
			t.Errorf("%s is named by neither run", id)
		}
	}
}

// charges makes the database with the charge table.
func (a *account) charges(t *testing.T) *pgx.Conn {
	t.Helper()
	a.env["DATABASE_URL"] = idemtest.URL(t)
	conn, err := pgx.Connect(t.Context(), a.env["DATABASE_URL"])
	if err == nil {
		err = charges.Migrate(t.Context(), conn)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// copied makes the row of a charge.
func copied(t *testing.T, conn *pgx.Conn, scope string, p asaas.Payment) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := charges.CopyRead(t.Context(), tx, scope, &p, time.Date(2026, 8, 8, 0, 0, 0, 0, asaas.Brasilia()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
