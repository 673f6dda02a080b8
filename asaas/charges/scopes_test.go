package charges_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Scopes that row keys of idem escape, and one that looks like what escaping makes.
const (
	saoPaulo = "São Paulo"
	slash    = "a/b"
	percent  = "a%2Fb"
)

// town is the database of one or several shops that begins now, or a while ago.
type town struct {
	*testing.T
	pool *pgxpool.Pool
}

// newTown returns one whose table is as old as days.
func newTown(t *testing.T, days int) *town {
	t.Helper()
	s := &town{t, idemtest.Pool(t)}
	_, err := s.pool.Exec(t.Context(), ledgerTable)
	if err := errors.Join(err, idem.Migrate(t.Context(), s.pool), charges.Migrate(t.Context(), s.pool)); err != nil {
		t.Fatal(err)
	}
	s.exec(`update asaas_charges_migrations set complete = complete - $1::int`, days)
	return s
}

func (s *town) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), sql, args...); err != nil {
		s.Fatal(err)
	}
}

// madeDaysAgo is a charge by card.
func madeDaysAgo(days int) *asaastest.Charge {
	c := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
	c.Now = time.Now().In(asaas.Brasilia()).AddDate(0, 0, -days)
	c.Payment.DateCreated = asaas.Date(c.Now.Format(time.DateOnly))
	return c
}

// deliver delivers a body to a receiver that books, and returns the event's state and error.
func (s *town) deliver(scope string, body []byte) (state, lastError string) {
	s.Helper()
	return s.deliverTo(newEvents(book), scope, body)
}

func (s *town) deliverTo(events *asaas.Dispatcher, scope string, body []byte) (state, lastError string) {
	s.Helper()
	p := idem.NewInbox(s.pool, events)
	p.Logger = nil
	e := asaas.Identify(body)
	e.Scope = scope
	_, accepted := p.Accept(s.Context(), e)
	if err := p.Drain(s.Context()); err != nil {
		s.Fatal(err)
	}
	found, ok, err := operator.New(p, "").Lookup(s.Context(), scope, e.ID)
	if err != nil || !ok {
		s.Fatal(ok, err, accepted)
	}
	return string(found.State), found.LastError
}

// want delivers bodies, and expects a state of each, with texts in its error.
func (s *town) want(state, scope string, body []byte, texts ...string) {
	s.Helper()
	got, says := s.deliver(scope, body)
	if got != state {
		s.Errorf("the event under %q is %s, want %s: %s", scope, got, state, says)
	}
	for _, text := range texts {
		if !strings.Contains(says, text) {
			s.Errorf("the error is %q, want %q in it", says, text)
		}
	}
}

func (s *town) rescope(from, to string) error {
	s.Helper()
	plan, err := operator.New(idem.NewInbox(s.pool, newEvents(book)), "ana").PlanRescope(s.Context(), from, operator.Account{Source: "asaas", Scope: to})
	if err == nil {
		_, err = plan.Do(s.Context(), "a second account")
	}
	return err
}

// wantBooked compares the ledger's lines of money, by scope.
func (s *town) wantBooked(want ...string) {
	s.Helper()
	rows, _ := s.pool.Query(s.Context(), `select scope || ': ' || sum(paid) from ledger group by scope having sum(paid) <> 0 order by scope collate "C"`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.Errorf("booked (-want +got):\n%s", diff)
	}
}

// of makes a body one of another account at Asaas.
func of(account string, body []byte) []byte {
	return bytes.ReplaceAll(body, []byte("5d2c7a10-6a1f-4e0b-9d55-0c1b7e2f9a31"), []byte(account))
}

// unnamed makes a body one without an account, as those of before January 2026 and of asaas-fake.
func unnamed(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte(`"account":`), []byte(`"none":`))
}

func TestAChargeThatComesUnderASecondScopeIsParkedWithBothNames(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"", "shop"}, {"shop", ""}, {saoPaulo, slash}, {slash, percent}, {percent, slash}} {
		t.Run(c[0]+" and "+c[1], func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 0)
			charge := madeDaysAgo(0)
			s.want("done", c[0], charge.Created())
			s.want("done", c[0], charge.Confirmed())
			s.want("parked", c[1], charge.Received(), fmt.Sprintf("%q", c[0]), fmt.Sprintf("%q", c[1]), "idem rescope", charge.Payment.ID)
			err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				_, err := charges.CopyRead(t.Context(), tx, c[1], &charge.Payment, time.Now())
				return err
			})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("under the scope %q", c[1])) {
				t.Errorf("a reading of it under %q: %v", c[1], err)
			}
			s.wantBooked(c[0] + ": 100.00")
		})
	}
}

// Both look for the row of the other before either has committed.
func TestAChargeThatComesUnderTwoScopesAtOnceIsBookedOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 0)
			charge := madeDaysAgo(0)
			body := charge.Created()
			first, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			second, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := second.Exec(t.Context(), `select from asaas_charges`); err != nil { // its snapshot
				t.Fatal(err)
			}
			if err := dispatch(t.Context(), first, newEvents(book), "shop", body); err != nil {
				t.Fatal(err)
			}
			pid := second.Conn().PgConn().PID()
			ended := make(chan error, 1)
			go func() {
				err := dispatch(t.Context(), second, newEvents(book), slash, body)
				ended <- errors.Join(err, second.Rollback(context.WithoutCancel(t.Context())))
			}()
			for query(t, s.pool, `select wait_event_type = 'Lock' from pg_stat_activity where pid = $1`, pid) != "true" {
				select {
				case err := <-ended:
					t.Fatalf("it does not wait for the first: %v", err)
				default:
				}
			}
			if err := first.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Error("the second is booked as well")
			}
		})
	}
}

// A process that does not call Apart yet takes an event, while another one starts.
func TestAnAccountThatIsSetApartWhileItsEventsComeIsBookedOnce(t *testing.T) {
	t.Parallel()
	s := newTown(t, 0)
	if err := charges.Filled(t.Context(), s.pool, slash, time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.want("done", slash, madeDaysAgo(0).Created())
	charge := madeDaysAgo(0)
	charge.Created()
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := dispatch(t.Context(), tx, newEvents(book), slash, charge.Confirmed()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- charges.Apart(t.Context(), s.pool, slash) }()
	const waits = `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
	for query(t, s.pool, waits) == "0" && len(ended) == 0 {
	}
	err = tx.Commit(t.Context())
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	s.want("done", slash, charge.Received())
	s.wantBooked(slash + ": 100.00")
	if got, want := query(t, s.pool, `select string_agg(distinct apart, ',') from asaas_charges`), slash; got != want {
		t.Errorf("the rows are apart as %q, want %q", got, want)
	}
}

// docs/recipes.md, "Several accounts": a card is confirmed, the account gets a scope, and its money comes.
func TestRescopeMovesTheChargesWithTheEvents(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"", "shop"}, {"", saoPaulo}, {saoPaulo, slash}, {slash, percent}, {percent, ""}} {
		t.Run(c[0]+" to "+c[1], func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 0)
			charge, other := madeDaysAgo(0), madeDaysAgo(0)
			s.want("done", c[0], charge.Created())
			s.want("done", c[0], charge.Confirmed())
			s.want("done", "another", other.Created())
			s.exec(`insert into asaas_charges_runs (scope, taken) values ($1, now())`, c[0])
			s.exec(`insert into asaas_statement (scope, id, day, type, value) values ($1, 'fint_1', '2026-11-01', 'TRANSFER', -1), ($1, 'fint_2', '2026-11-02', 'TRANSFER', -2),
				($2, 'fint_1', '2026-11-01', 'TRANSFER', -1), ('another', 'fint_1', '2026-11-01', 'TRANSFER', -3)`, c[0], c[1]) // a process with the new name has copied one
			s.exec(`insert into asaas_statement_days values ($1, '2026-10-01', '2026-11-02', now()), ($2, '2026-11-01', '2026-11-01', now()), ('another', '2026-11-01', '2026-11-01', now())`, c[0], c[1])
			early := charge.Received()
			s.want("parked", c[1], early) // a process has the new name already
			if err := s.rescope(c[0], c[1]); err != nil {
				t.Fatal(err)
			}
			s.want("done", c[1], early)
			s.want("done", c[1], charge.PartiallyRefunded(asaas.Cents(1000)))
			if got, want := query(t, s.pool, `select sum(paid) from ledger`), "90.00"; got != want {
				t.Errorf("%s are booked, want %s", got, want)
			}
			if got, want := query(t, s.pool, `select string_agg(scope || ' ' || first || ' ' || last || ' ' || (select sum(value) from asaas_statement s where s.scope = d.scope), ',' order by scope = 'another')
				from asaas_statement_days d`), c[1]+" 2026-10-01 2026-11-02 -3,another 2026-11-01 2026-11-01 -3"; got != want {
				t.Errorf("the statement is %q, want %q", got, want)
			}
			for table, want := range map[string]string{"asaas_charges": c[1] + ",another", "asaas_charges_since": c[1] + ",another", "asaas_charges_runs": c[1]} {
				if got := query(t, s.pool, `select string_agg(scope, ',' order by scope = 'another') from `+table); got != want {
					t.Errorf("%s has rows of %q, want %q", table, got, want)
				}
			}
		})
	}
}

func TestRescopeToAScopeWithRowsOfTheSameChargesIsRefusedWithTheirNames(t *testing.T) {
	t.Parallel()
	s := newTown(t, 0)
	if err := charges.Apart(t.Context(), s.pool, slash); err != nil {
		t.Fatal(err)
	}
	charge := madeDaysAgo(0)
	s.want("done", saoPaulo, charge.Created())
	s.want("done", slash, charge.Confirmed())
	before := query(t, s.pool, `select string_agg(scope || ' ' || status, ',' order by scope) from asaas_charges`)
	err := s.rescope(saoPaulo, slash)
	for _, text := range []string{charge.Payment.ID, saoPaulo, slash} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("rescope = %v, want %q in it", err, text)
		}
	}
	if after := query(t, s.pool, `select string_agg(scope || ' ' || status, ',' order by scope) from asaas_charges`); after != before {
		t.Errorf("the rows are %s, and were %s", after, before)
	}
}

func TestRescopeDoesNotMixTwoAccountsOfAsaas(t *testing.T) {
	t.Parallel()
	s := newTown(t, 0)
	s.want("done", saoPaulo, madeDaysAgo(0).Created())
	s.want("done", slash, of("another account", madeDaysAgo(0).Created()))
	if err := s.rescope(saoPaulo, slash); err == nil || !strings.Contains(err.Error(), "another account") {
		t.Errorf("rescope = %v, want an error that names both accounts", err)
	}
}

// The target has begun before the move: what each of the two knows stays known.
func TestRescopeMergesWhatBothScopesKnow(t *testing.T) {
	t.Parallel()
	s := newTown(t, 0)
	charge := madeDaysAgo(0)
	s.want("done", "", charge.Created())
	s.want("done", saoPaulo, madeDaysAgo(0).Created())
	s.exec(`insert into asaas_charges_runs (scope, began, taken) values ('', now(), now()), ($1, now(), now() + interval '1 hour')`, saoPaulo)
	s.exec(`update asaas_charges_since set since = '2026-01-01' where scope = ''`)
	if err := charges.Apart(t.Context(), s.pool, saoPaulo); err != nil {
		t.Fatal(err)
	}
	if err := s.rescope("", saoPaulo); err != nil {
		t.Fatal(err)
	}
	const all = `select concat_ws(' ', (select string_agg(distinct scope || ' ' || apart, ',') from asaas_charges),
		(select string_agg(scope || ' ' || since || ' ' || apart, ',') from asaas_charges_since), (select string_agg(scope || ' ' || (began is null), ',') from asaas_charges_runs))`
	if got, want := query(t, s.pool, all), "São Paulo São Paulo São Paulo 2026-01-01 true São Paulo true"; got != want {
		t.Errorf("the tables have %q, want %q", got, want)
	}
	s.want("done", saoPaulo, charge.Confirmed())
}

// The table is complete since January; the account joins today, and another program has booked it so far.
func TestAnAccountThatJoinsLaterBeginsWithItsOwnDay(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"shop", saoPaulo, slash} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 180)
			s.want("done", "", madeDaysAgo(100).Created()) // the first account begins with the table
			open := madeDaysAgo(30)
			open.Created()
			open.Confirmed()
			s.want("parked", scope, of("another", open.Received()), "its row is missing")
			s.want("done", scope, of("another", madeDaysAgo(0).Created()))
			open = madeDaysAgo(1)
			open.Created()
			s.want("parked", scope, of("another", open.Confirmed()), "its row is missing")
		})
	}
}

// The tables were shipped long before the handler, and other handlers have booked meanwhile.
func TestAChargeThatOthersHaveBookedIsParkedWhenTheHandlerIsShippedAfterTheTables(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"", saoPaulo, slash} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 180)
			old := asaas.NewDispatcher("token")
			old.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
			long, today := madeDaysAgo(100), madeDaysAgo(0)
			for _, c := range []*asaastest.Charge{long, today} {
				c.Created()
				if state, says := s.deliverTo(old, scope, c.Confirmed()); state != "done" {
					t.Fatal(state, says)
				}
			}
			s.exec(`delete from idem_events where key = $1`, long.Payment.ID) // it is pruned
			s.want("parked", scope, long.Received(), "is missing", "complete since")
			s.want("parked", scope, today.Received(), "is missing", "has a done event and its row is missing")
			s.want("done", scope, madeDaysAgo(0).Created())
			s.wantBooked()
		})
	}
}

// The version with the handler was taken back for a while, and the one before has booked again.
func TestAChargeWithADoneEventAndNoRowIsParkedAndNotRead(t *testing.T) {
	t.Parallel()
	s := newTown(t, 0)
	s.want("done", saoPaulo, madeDaysAgo(0).Created())
	s.exec(`update asaas_charges_since set since = since - 30`)
	old := asaas.NewDispatcher("token")
	old.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	charge := madeDaysAgo(3)
	bodies := [][]byte{charge.Created(), charge.Confirmed(), charge.Received()}
	if state, says := s.deliverTo(old, saoPaulo, bodies[1]); state != "done" {
		t.Fatal(state, says)
	}
	s.want("parked", saoPaulo, bodies[2], "has a done event and its row is missing")
	fake, client := newAccount(t)
	fake.Emit(bodies...)
	run := gap()
	run.Scope = saoPaulo
	report, err := charges.Reconcile(t.Context(), client, s.pool, run)
	if err != nil || report.Failed[charge.Payment.ID] == nil {
		t.Errorf("a run reports %+v, %v; want that the charge failed", report, err)
	}
	s.wantBooked()
}

func TestAnEventOfAnotherAccountIsParked(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"", saoPaulo, slash} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 0)
			s.want("done", scope, madeDaysAgo(0).Created())
			pix := madeDaysAgo(0)
			pix.Created()
			s.want("parked", scope, of("9f000000-0000-4000-8000-000000000001", pix.Confirmed()),
				"9f000000-0000-4000-8000-000000000001", "5d2c7a10-6a1f-4e0b-9d55-0c1b7e2f9a31", fmt.Sprintf("%q", scope))
			s.wantBooked()
			s.want("done", scope, unnamed(madeDaysAgo(0).Created()))
		})
	}
}

// A developer delivers events by hand first, and then connects the account.
func TestTheAccountIsThatOfTheFirstEventThatNamesOne(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"", saoPaulo, slash} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 3)
			byHand, ours, theirs := madeDaysAgo(1), madeDaysAgo(0), madeDaysAgo(0)
			s.want("done", scope, unnamed(byHand.Created()))
			s.want("done", scope, unnamed(byHand.Confirmed()))
			fake, client := newAccount(t)
			run := charges.Settings{Scope: scope, Since: time.Now().AddDate(0, 0, -3), Apply: book}
			if _, err := charges.Reconcile(t.Context(), client, s.pool, run); err == nil || !strings.Contains(err.Error(), "asaas-fake") {
				t.Errorf("the run ended with %v, want an error that says how it ends", err)
			}
			created, confirmed := ours.Created(), ours.Confirmed()
			fake.Emit(created, confirmed)
			s.want("done", scope, created)
			s.want("done", scope, confirmed)
			reconcile(t, client, s.pool, run)
			theirs.Created()
			s.want("parked", scope, of("another account", theirs.Confirmed()), "another account")
			s.wantBooked(scope + ": 200.00")
		})
	}
}

// Its Pix for its order 1001 would pay our order 1001.
func TestTheKeyOfAnotherAccountReadsNothing(t *testing.T) {
	t.Parallel()
	const another = "9f000000-0000-4000-8000-000000000001"
	for _, scope := range []string{"", saoPaulo, slash} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 3)
			ours, theirs := madeDaysAgo(2), madeDaysAgo(0)
			created := ours.Created()
			s.want("done", scope, created)
			fake, client := newAccount(t)
			fake.Emit(of(another, theirs.Created()), of(another, theirs.Confirmed()))
			run := charges.Settings{Scope: scope, Since: time.Now().AddDate(0, 0, -3), Apply: book}
			if _, err := charges.Reconcile(t.Context(), client, s.pool, run); err == nil || !strings.Contains(err.Error(), another) || !strings.Contains(err.Error(), fmt.Sprintf("%q", scope)) {
				t.Errorf("the run ended with %v, want an error that names both accounts", err)
			}
			d := &charges.Daily{Client: client, DB: s.pool, Scope: scope, Apply: book, Logger: slog.New(slog.DiscardHandler)}
			if _, err := d.Look(t.Context()); err == nil {
				t.Error("Daily has read it")
			}
			s.wantBooked()

			// Asaas's two names of an account may differ: a charge of ours decides then.
			fake, client = newAccount(t)
			fake.Emit(of(another, created), of(another, ours.Confirmed()))
			for range 2 {
				reconcile(t, client, s.pool, run)
			}
			s.wantBooked(scope + ": 100.00")
			if got := query(t, s.pool, `select key from asaas_charges_since`); got != another {
				t.Errorf("the key's account is %s, want %s", got, another)
			}
		})
	}
}

func TestAScopeThatIsLeftOutOrMisspelledIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	for _, known := range []string{"shop", saoPaulo, slash} {
		for _, given := range []string{"", known + "x", percent} {
			t.Run(known+" not "+given, func(t *testing.T) {
				t.Parallel()
				s := newTown(t, 0)
				charge := madeDaysAgo(0)
				fake, client := newAccount(t)
				bodies := [][]byte{charge.Created(), charge.Confirmed()}
				for _, body := range bodies {
					s.want("done", known, body)
				}
				if err := charges.Filled(t.Context(), s.pool, "", time.Time{}); err != nil { // as an example has it
					t.Fatal(err)
				}
				fake.Emit(bodies...)
				unmatched := &charges.Unmatched{DB: s.pool, Scope: given, Known: "exists (select from ledger where charge = c.id)"}
				d := &charges.Daily{Client: client, DB: s.pool, Scope: given, Apply: book, Logger: slog.New(slog.DiscardHandler)}
				_, ofReconcile := charges.Reconcile(t.Context(), client, s.pool, charges.Settings{Scope: given, Since: time.Now().AddDate(0, 0, -14), Apply: book})
				_, ofUnmatched := unmatched.Count(t.Context())
				_, ofDaily := d.Look(t.Context())
				for name, err := range map[string]error{"Reconcile": ofReconcile, "Unmatched": ofUnmatched, "Daily": ofDaily} {
					if err == nil || !strings.Contains(err.Error(), "Scope") && !strings.Contains(err.Error(), "scope") {
						t.Errorf("%s = %v, want an error about its Scope", name, err)
					}
				}
				if given == "" {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if err := d.Run(ctx); err == nil {
						t.Error("Daily runs without a scope")
					}
				}
				for _, result := range append(d.Examine(t.Context(), check.Limits{Timeout: time.Minute}), unmatched.Examine(t.Context(), check.Limits{Timeout: time.Minute})...) {
					if result.Healthy {
						t.Errorf("health says of %s: %s", result.Name, result.Says)
					}
				}
				s.wantBooked(known + ": 100.00")
			})
		}
	}
}

// An account without a scope goes on beside those that have one, and one that has just joined is read from its first
// event on.
func TestAScopeIsTakenWhereItMayBeRight(t *testing.T) {
	t.Parallel()
	s := newTown(t, 0)
	s.want("done", "", madeDaysAgo(0).Created())
	s.want("done", saoPaulo, madeDaysAgo(0).Created())
	old := asaas.NewDispatcher("token")
	old.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	joined := madeDaysAgo(0)
	joined.Created()
	s.deliverTo(old, slash, joined.Confirmed())
	if err := charges.Filled(t.Context(), s.pool, percent, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []string{"", saoPaulo, slash, percent} {
		fake, client := newAccount(t)
		if scope == slash || scope == percent { // no event of ours has told its account yet
			fake.Emit(of("the account of "+scope, madeDaysAgo(0).Created()))
		}
		if _, err := charges.Reconcile(t.Context(), client, s.pool, charges.Settings{Scope: scope, Since: time.Now().AddDate(0, 0, -1), Apply: book}); err != nil {
			t.Errorf("%q: %v", scope, err)
		}
		if _, err := (&charges.Unmatched{DB: s.pool, Known: "c.scope = 'x'"}).Count(t.Context()); err != nil {
			t.Errorf("%q: %v", scope, err)
		}
	}
}

func TestTheTableIsNotFilledWhileAnEventOfAChargeWithoutARowIsParked(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"", saoPaulo, slash} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			s := newTown(t, 0)
			s.want("done", scope, madeDaysAgo(0).Created())
			charge := madeDaysAgo(30)
			bodies := [][]byte{charge.Created(), charge.Confirmed()}
			events := newEvents(book)
			p := idem.NewInbox(s.pool, events)
			p.Logger, p.RedactError = nil, func(error) string { return "redacted" }
			e := asaas.Identify(bodies[1])
			e.Scope = scope
			_, err := p.Accept(t.Context(), e)
			if err := errors.Join(err, p.Drain(t.Context())); err != nil {
				t.Fatal(err)
			}
			fake, client := newAccount(t)
			fake.Emit(bodies...)
			fill := charges.Settings{Scope: scope, Since: time.Now().AddDate(0, 0, -60)}
			if _, err := charges.Reconcile(t.Context(), client, s.pool, fill); err == nil || !strings.Contains(err.Error(), "1 events are parked") {
				t.Fatalf("the table is filled: %v", err)
			}
			if state, says := s.deliverTo(newEvents(nil), scope, bodies[1]); state != "done" { // beside the handlers that booked it
				t.Fatal(state, says)
			}
			reconcile(t, client, s.pool, fill)
			s.want("done", scope, charge.Received())
			s.wantBooked()
		})
	}
}
