package readme

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// A Pix of the last day of September, of which a part is given back in October; November has begun.
func TestAMonthClosesByTheStatementsOfTheDocument(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	for _, migrate := range []error{idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool)} {
		if migrate != nil {
			t.Fatal(migrate)
		}
	}
	fake := asaastest.New()
	defer fake.Close()
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	c.Now = time.Date(2026, time.September, 30, 23, 30, 0, 0, asaas.Brasilia()) // October, in Greenwich
	fake.Emit(c.Created(), c.Received())
	c.Now = c.Now.AddDate(0, 0, 5)
	fake.Emit(c.PartiallyRefunded(asaas.Cents(3000)))
	if _, err := charges.Reconcile(t.Context(), fake.Client(), pool, charges.Settings{Since: time.Date(2026, time.September, 1, 12, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	all := blocks(t, "docs/accountant.md", "sql")
	if len(all) != 6 {
		t.Fatalf("the document has %d statements, want 6", len(all))
	}
	rows := func(statement string) (found []string) {
		t.Helper()
		got, err := pool.Query(t.Context(), `select translate(row_to_json(r)::text, '{}"', '') from (`+strings.TrimSuffix(strings.TrimSpace(statement), ";")+`) r`)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		for got.Next() {
			var line string
			if err := got.Scan(&line); err != nil {
				t.Fatal(err)
			}
			found = append(found, line)
		}
		if got.Err() != nil {
			t.Fatalf("%s: %v", statement, got.Err())
		}
		return found
	}
	want := []string{
		"month:2026-09-01,opening:0.00,charges:100.00,refunds:0,chargebacks:0,fees:-1.99,splits:0,anticipations:0,transfers:0,others:0,net:98.01,closing:98.01,unexplained:0.00,whole:true,complete:true",
		"month:2026-10-01,opening:98.01,charges:0,refunds:-30.00,chargebacks:0,fees:0,splits:0,anticipations:0,transfers:0,others:0,net:-30.00,closing:68.01,unexplained:0.00,whole:true,complete:true",
	}
	if diff := cmp.Diff(want, rows(all[0].text)); diff != "" {
		t.Errorf("the months (-want +got):\n%s", diff)
	}
	for n, want := range []int{2, 0, 0, 0, 0} {
		if got := rows(all[n].text); len(got) != want {
			t.Errorf("%s\nhas %q, want %d rows", all[n].text, got, want)
		}
	}
	if _, err := pool.Exec(t.Context(), `delete from asaas_statement where kind = 'fee'; update asaas_charges set received = 100`); err != nil {
		t.Fatal(err)
	}
	if got := rows(all[1].text); len(got) != 1 || !strings.Contains(got[0], "2026-10") {
		t.Errorf("without the fee these days do not close: %q, want the next one of October", got)
	}
	if got := rows(all[3].text); len(got) != 1 || !strings.Contains(got[0], c.Payment.ID) {
		t.Errorf("the charges that differ are %q, want %s", got, c.Payment.ID)
	}
	if _, err := pool.Exec(t.Context(), all[5].text); err != nil {
		t.Error(err)
	}
}
