package charges_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

// copied has a pool copy the statement of a fake, with the rows of its charges, and forget the rows: what the table knows is what the
// test delivers.
func copied(t *testing.T, bodies ...[]byte) *pgxpool.Pool {
	t.Helper()
	pool := newTables(t)
	fake, client := newAccount(t)
	fake.Emit(bodies...)
	run := gap()
	run.Apply = nil
	reconcile(t, client, pool, run)
	if _, err := pool.Exec(t.Context(), `create table truth as select id, received from asaas_charges; delete from asaas_charges`); err != nil {
		t.Fatal(err)
	}
	return pool
}

func TestALostEventIsNamedByTheProof(t *testing.T) {
	t.Parallel()
	type charge = asaastest.Charge
	for _, c := range []struct {
		why     string
		billing asaas.BillingType
		life    func(c *charge) [][]byte
		lost    int // of the last events
		differs string
		says    string // the begin
	}{
		{"all of it came", pix0, func(c *charge) [][]byte { return [][]byte{c.Created(), c.Received()} }, 0, "false", ""},
		{"the receipt is lost", pix0, func(c *charge) [][]byte { return [][]byte{c.Created(), c.Received()} }, 1, "true", "by the statement R$ 100.00 came and R$ 0.00 went, and the table has R$ 0.00 here"},
		{"no event came", pix0, func(c *charge) [][]byte { return [][]byte{c.Created(), c.Received()} }, 2, "true", "by the statement R$ 100.00 came and R$ 0.00 went, and the table has no row"},
		{"a refund is known, and a later one is lost", pix0, func(c *charge) [][]byte {
			return [][]byte{c.Created(), c.Received(), c.PartiallyRefunded(asaas.Cents(4000)), c.PartiallyRefunded(asaas.Cents(4000))}
		}, 1, "true", "by the statement R$ 100.00 came and R$ 80.00 went, and the table has R$ 60.00 here"},
		{"the end of a refund is lost", pix0, func(c *charge) [][]byte {
			return [][]byte{c.Created(), c.Received(), c.RefundAsked(asaas.Cents(3000)), c.RefundDone()}
		}, 1, "null", "it is being given back"},
		{"a chargeback is lost", card0, func(c *charge) [][]byte {
			return [][]byte{c.Created(), c.Confirmed(), c.Received(), c.ChargebackRequested()}
		}, 1, "true", "by the statement R$ 100.00 came and R$ 100.00 went, and the table has R$ 100.00 here"},
		{"the end of a chargeback that was won is lost", card0, func(c *charge) [][]byte {
			return [][]byte{c.Created(), c.Confirmed(), c.Received(), c.ChargebackRequested(), c.ChargebackDispute(), c.AwaitingChargebackReversal(), c.Received()}
		}, 1, "true", "by the statement R$ 100.00 came and R$ 0.00 went, and the table has R$ 0.00 here"},
		{"cash is not at Asaas", boleto0, func(c *charge) [][]byte { return [][]byte{c.Created(), c.ReceivedInCash()} }, 0, "null", "it was paid in cash"},
		{"an anticipation", card0, func(c *charge) [][]byte {
			c.Payment.Anticipated = true
			return [][]byte{c.Created(), c.Confirmed(), c.Received()}
		}, 0, "null", "it is anticipated"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			one := asaastest.NewCharge(c.billing, asaas.Cents(10000))
			bodies := c.life(one)
			pool := copied(t, bodies...)
			know(t, pool, bodies[:len(bodies)-c.lost]...)
			differs, says := query(t, pool, `select differs from asaas_proof`), query(t, pool, `select says from asaas_proof`)
			if differs != c.differs || !strings.HasPrefix(says, c.says) || (says == "") != (c.says == "") {
				t.Errorf("it differs: %s, %q; want %s, %q", differs, says, c.differs, c.says)
			}
			d := &charges.Daily{DB: pool}
			got := d.Examine(t.Context(), check.Limits{Timeout: time.Minute})[1]
			if got.Name != "statement" || got.Healthy == (c.differs == "true") || !got.Healthy && !strings.Contains(got.Says, "differ: 1 charges, the first is "+one.Payment.ID) {
				t.Errorf("health says of %s, healthy %t: %s", got.Name, got.Healthy, got.Says)
			}
		})
	}
}

const pix0, card0, boleto0 = asaas.BillingTypePix, asaas.BillingTypeCreditCard, asaas.BillingTypeBoleto

func TestWhatTheCopyOfTheStatementCannotSayIsSaid(t *testing.T) {
	t.Parallel()
	c := asaastest.NewCharge(pix0, asaas.Cents(10000))
	bodies := [][]byte{c.Created(), c.Received(), c.PartiallyRefunded(asaas.Cents(1000))}
	for _, test := range []struct{ why, change, says string }{
		{"before its first day", `delete from asaas_statement; update asaas_statement_days set first = '2026-09-01'`, "its money came before the first day of the statement"},
		{"before it, and more went than the table knows", `delete from asaas_statement where kind = 'charge'; update asaas_statement_days set first = '2026-09-01'; update asaas_charges set received = value`, "by the statement R$ 0.00 came and R$ 10.00 went"},
		{"on the day of the copy", `delete from asaas_statement; update asaas_statement_days set last = '2026-08-08'`, "its money came on the day of the last copy"},
		{"the row is newer", `update asaas_charges set at = now() + interval '1 hour', received = 0`, "it has changed since the statement was copied"},
		{"the refund is not in it", `delete from asaas_statement where kind = 'refund'`, "the table has more of it given back than the statement"},
		{"a part of it was paid", `update asaas_statement set type = 'PARTIAL_PAYMENT', value = 40 where kind = 'charge'`, "a part of it was paid"},
		{"no copy", `delete from asaas_statement_days`, "the statement of the account is not copied"},
	} {
		pool := copied(t, bodies...)
		know(t, pool, bodies...)
		if _, err := pool.Exec(t.Context(), test.change); err != nil {
			t.Fatal(err)
		}
		if says := query(t, pool, `select says from asaas_proof`); !strings.HasPrefix(says, test.says) {
			t.Errorf("%s: the view says %q, want %q", test.why, says, test.says)
		}
	}
}

func TestEachTypeOfTheStatementIsOfTheKindThatAsaasSaysOfIt(t *testing.T) {
	t.Parallel()
	pool := copied(t)
	for _, test := range []struct{ kind, reason, types string }{
		{"charge", "Cobrança recebida, parcialmente recebida", "PAYMENT_RECEIVED PARTIAL_PAYMENT"},
		{"refund", "Estorno de fatura, and its cancellation", "PAYMENT_REVERSAL PAYMENT_REFUND_CANCELLED REFUND_REQUEST_CANCELLED"},
		{"chargeback", "Bloqueio de saldo devido ao chargeback de cobrança", "CHARGEBACK CHARGEBACK_REVERSAL"},
		{"fee", "Taxa", `PAYMENT_FEE TRANSFER_FEE PIX_TRANSACTION_CREDIT_FEE PIX_TRANSACTION_DEBIT_FEE RECEIVABLE_ANTICIPATION_FEE
			REFUND_REQUEST_FEE BILL_PAYMENT_FEE INVOICE_FEE PAYMENT_DUNNING_RECEIVED_IN_CASH_FEE ACCOUNT_INACTIVITY_FEE CREDIT_BUREAU_REPORT`},
		{"fee", "Estorno de taxa", "PAYMENT_FEE_REVERSAL REFUND_REQUEST_FEE_REVERSAL CHARGED_FEE_REFUND BILL_PAYMENT_FEE_CANCELLED"},
		{"fee", "Desconto na taxa", "PROMOTIONAL_CODE_CREDIT PROMOTIONAL_CODE_DEBIT FREE_PAYMENT_USE"},
		{"anticipation", "Antecipação, baixa da parcela", "RECEIVABLE_ANTICIPATION_GROSS_CREDIT RECEIVABLE_ANTICIPATION_DEBIT RECEIVABLE_ANTICIPATION_PARTNER_SETTLEMENT"},
		{"transfer", "Transferência", `TRANSFER TRANSFER_REVERSAL INTERNAL_TRANSFER_CREDIT INTERNAL_TRANSFER_DEBIT PIX_TRANSACTION_CREDIT
			PIX_TRANSACTION_DEBIT PIX_TRANSACTION_DEBIT_REFUND`},
		{"other", "neither of a charge nor of Asaas's work", "CREDIT DEBIT REVERSAL BACEN_JUDICIAL_LOCK PAYMENT_CUSTODY_BLOCK MOBILE_PHONE_RECHARGE ASAAS_CARD_TRANSACTION BILL_PAYMENT"},
		{"other", "a type of tomorrow", "SOMETHING_NEW"},
	} {
		for of := range strings.FieldsSeq(test.types) {
			var got string
			err := pool.QueryRow(t.Context(), `insert into asaas_statement (scope, id, day, type, value) values ('', $1, '2026-11-01', $1, 1) returning kind`, of).Scan(&got)
			if err != nil || got != test.kind {
				t.Errorf("%s (%s) is of the kind %q, want %s; error: %v", of, test.reason, got, test.kind, err)
			}
		}
	}
}

// A year of random lives, of which some lost their last events.
func TestTheStatementOfAYearAndTheTableAgreeOrNameEachOther(t *testing.T) {
	t.Parallel()
	for round := range testkit.Size(2, 4) {
		random := rand.New(rand.NewPCG(uint64(round), 41))
		var all, came [][]byte
		for range testkit.Size(60, 150) {
			bodies := lifeOfSomeYear(random)
			all = append(all, bodies...)
			if random.IntN(3) == 0 {
				bodies = bodies[:1+random.IntN(len(bodies))]
			}
			came = append(came, bodies...)
		}
		slices.SortStableFunc(all, func(a, b []byte) int { return strings.Compare(timeOf(a), timeOf(b)) })
		pool := copied(t, all...)
		random.Shuffle(len(came), func(i, j int) { came[i], came[j] = came[j], came[i] })
		know(t, pool, came...)
		const wrong = `select string_agg(charge || ': ' || coalesce(differs::text, 'null') || ' ' || says, '; ') from asaas_proof p join truth on id = charge left join asaas_charges c on c.id = charge
			where case when c.received is distinct from truth.received then says = '' else coalesce(differs, false) end`
		if got := query(t, pool, wrong); got != "null" {
			t.Errorf("round %d: judged wrong: %s", round, got)
		}
		if got := query(t, pool, `select sum(came - went) = sum(received) from asaas_proof where not differs`); got != "true" {
			t.Errorf("round %d: the sums of the charges that agree do not", round)
		}
		if got := query(t, pool, `select sum(charges + refunds + chargebacks) = (select sum(received) from truth where id in (select payment from asaas_statement)) from asaas_ledger`); got != "true" {
			t.Errorf("round %d: the charges' money in the ledger is not the truth", round)
		}
		if got := query(t, pool, `select count(*) > 0 from asaas_proof where differs`); got != "true" {
			t.Errorf("round %d: nothing was lost: this test tries nothing", round)
		}
		wantMonths(t, pool)
		for range 10 { // one movement is missing, neither the first nor the last
			const remove = `delete from asaas_statement where id = (select id from asaas_statement where value <> 0 and id > (select min(id) from asaas_statement) and id < (select max(id) from asaas_statement)
				order by md5(id || $1) limit 1) returning value`
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var removed asaas.Money
			var whole bool
			var unexplained asaas.Money
			if err := tx.QueryRow(t.Context(), remove, fmt.Sprint(random.Int())).Scan(&removed); err != nil {
				t.Fatal(err)
			}
			const months = `select bool_and(whole), coalesce((select max(closing) - min(opening) from (select (array_agg(opening order by month))[1] as opening, (array_agg(closing order by month desc))[1] as closing
				from asaas_months) ends) - sum(net), 0) from asaas_months`
			if err := tx.QueryRow(t.Context(), months).Scan(&whole, &unexplained); err != nil {
				t.Fatal(err)
			}
			if whole || unexplained.Cmp(removed) != 0 {
				t.Errorf("round %d: without a movement of %s the books are whole: %t, and R$ %s are unexplained", round, removed, whole, unexplained)
			}
			_ = tx.Rollback(t.Context())
		}
	}
}

// wantMonths checks that each month closes, and begins as the one before has ended.
func wantMonths(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	const open = `select string_agg(month::text, ', ') from (select *, lag(closing) over (order by month) as before from asaas_months) m
		where whole is not true or unexplained is distinct from 0 or before <> opening or net <> charges + refunds + chargebacks + fees + splits + anticipations + transfers + others`
	if got := query(t, pool, open); got != "null" {
		t.Errorf("these months do not close: %s", got)
	}
	const balance = `select (select balance from asaas_statement order by id desc limit 1) = (select closing from asaas_ledger order by day desc limit 1)`
	if got := query(t, pool, balance); got != "true" {
		t.Error("the last closing balance is not that of the last movement")
	}
}

// timeOf returns the time of an event, as Asaas spells it.
func timeOf(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"dateCreated":"`)
	return rest[:19]
}

// lifeOfSomeYear returns the events of a charge in some year.
func lifeOfSomeYear(random *rand.Rand) (bodies [][]byte) {
	billing := []asaas.BillingType{pix0, card0, boleto0}[random.IntN(3)]
	c := asaastest.NewCharge(billing, asaas.Cents(int64(500+random.IntN(50000))))
	c.Now = time.Date(2025, time.June, 1+random.IntN(300), random.IntN(24), random.IntN(60), 0, 0, asaas.Brasilia())
	if random.IntN(4) == 0 {
		c.Payment.Split = value.Of([]asaas.Split{{ID: value.Of("split"), TotalValue: value.Of(asaas.Cents(100))}})
	}
	add := func(body []byte) { bodies = append(bodies, body) }
	some := func() asaas.Money { return asaas.Cents(int64(1 + random.IntN(100))) }
	add(c.Created())
	if billing == boleto0 && random.IntN(4) == 0 {
		add(c.ReceivedInCash())
		return bodies
	}
	if billing != pix0 {
		add(c.Confirmed())
		switch random.IntN(8) {
		case 0:
			add(c.Refunded())
			return bodies
		case 1:
			add(c.PartiallyRefunded(some()))
		case 2:
			c.Payment.Anticipated = billing == card0
		}
	}
	add(c.Received())
	for random.IntN(3) > 0 {
		switch random.IntN(4) {
		case 0, 1:
			add(c.PartiallyRefunded(some()))
		case 2:
			add(c.RefundAsked(some()))
			if random.IntN(2) == 0 {
				add(c.RefundDone())
			} else {
				add(c.RefundCanceled())
			}
		case 3:
			if billing == card0 {
				add(c.ChargebackRequested())
				add(c.ChargebackDispute())
				if random.IntN(2) == 0 {
					add(c.AwaitingChargebackReversal())
					add(c.Received())
					return bodies
				}
			}
			add(c.Refunded())
			return bodies
		}
	}
	return bodies
}

func TestDailyCopiesTheStatementOfAnAccountAndFindsWhatIsDatedLate(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"", "São Paulo", "a/b"} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			if err := charges.Filled(t.Context(), pool, scope, time.Time{}); err != nil {
				t.Fatal(err)
			}
			fake, client := newAccount(t)
			emit := func(days int) {
				c := asaastest.NewCharge(pix0, asaas.Cents(10000))
				c.Now = time.Now().AddDate(0, 0, -days).In(asaas.Brasilia())
				fake.Emit(c.Created(), c.Received())
			}
			d := &charges.Daily{Client: client, DB: pool, Scope: scope, Apply: book, Logger: slog.New(slog.DiscardHandler)}
			look := func() {
				t.Helper()
				if _, err := d.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := pool.Exec(t.Context(), `update asaas_charges_runs set began = began - interval '2 days', unsettled = unsettled - interval '8 days'`); err != nil {
					t.Fatal(err)
				}
			}
			emit(5)
			look()
			emit(10) // dated late
			look()
			got := query(t, pool, `select scope || ' ' || count(*) || ' ' || sum(value) || ' ' || (select (last - first) || ' ' || scope from asaas_statement_days) from asaas_statement group by scope`)
			if want := fmt.Sprintf("%s 4 196.02 15 %[1]s", scope); got != want {
				t.Errorf("the statement is %q, want %q", got, want)
			}
			if got := query(t, pool, `select string_agg(scope || ' ' || net, ',' order by day) from asaas_ledger`); got != scope+" 98.01,"+scope+" 98.01" {
				t.Errorf("the ledger is %q", got)
			}
			if got := query(t, pool, `select string_agg(scope || ' ' || differs, ',') from asaas_proof`); got != scope+" false,"+scope+" false" {
				t.Errorf("the proof is %q", got)
			}
		})
	}
}

func TestADryRunCopiesNoStatement(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	_, created, received := pix(1)
	fake.Emit(created[0], received[0])
	s := gap()
	s.DryRun = true
	reconcile(t, client, pool, s)
	if got := query(t, pool, `select count(*) + (select count(*) from asaas_statement_days) from asaas_statement`); got != "0" {
		t.Errorf("%s rows are written", got)
	}
}

// Neither is in a list of days, and neither moves money of the statement.
func TestAnOldCashReceiptThatIsUndoneAndADisputeBeforeTheMoneyCameAreFound(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	old := func(billing asaas.BillingType) *asaastest.Charge {
		c := asaastest.NewCharge(billing, asaas.Cents(10000))
		c.Now = time.Now().AddDate(0, 0, -60).In(asaas.Brasilia())
		c.Payment.DateCreated = asaas.Date(c.Now.Format(time.DateOnly))
		return c
	}
	cash, disputed := old(boleto0), old(card0)
	bodies := [][]byte{cash.Created(), cash.ReceivedInCash(), disputed.Created(), disputed.Confirmed()}
	know(t, pool, bodies...)
	fake.Emit(bodies...)
	cash.Now, disputed.Now = time.Now().In(asaas.Brasilia()), time.Now().AddDate(0, 0, -3).In(asaas.Brasilia())
	fake.Emit(cash.CashUndone(), disputed.ChargebackRequested())
	s := gap()
	s.Since, s.Unsettled = time.Now().AddDate(0, 0, -1), false
	reconcile(t, client, pool, s)
	want := []string{string(cash.Payment.Status), "CHARGEBACK_REQUESTED"}
	got := []string{query(t, pool, `select status from asaas_charges where id = $1`, cash.Payment.ID), query(t, pool, `select status from asaas_charges where id = $1`, disputed.Payment.ID)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}
