package charges_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

// newAccount returns an account at a fake of Asaas, and a client of its API.
func newAccount(t *testing.T) (*asaastest.Fake, *asaas.Client) {
	t.Helper()
	fake := asaastest.New()
	t.Cleanup(fake.Close)
	return fake, fake.Client()
}

// gap returns settings that begin before all charges of tests, and book into the ledger.
func gap() charges.Settings {
	return charges.Settings{Since: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Unsettled: true, Apply: book}
}

// know handles the events that came.
func know(t *testing.T, pool *pgxpool.Pool, bodies ...[]byte) {
	t.Helper()
	events := newEvents(book)
	for _, body := range bodies {
		if err := handle(t, pool, events, "", body); err != nil {
			t.Fatal(err)
		}
	}
}

// reconcile runs to the end.
func reconcile(t *testing.T, client *asaas.Client, pool *pgxpool.Pool, s charges.Settings) charges.Report {
	t.Helper()
	report, err := charges.Reconcile(t.Context(), client, pool, s)
	if err != nil || report.Cursor != nil || len(report.Failed) > 0 {
		t.Fatalf("the run ended with %+v, %v", report, err)
	}
	return report
}

func TestEveryLifeIsBookedRightWhicheverOfItsLastEventsNeverCame(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	type life struct {
		asaastest.Life
		known int
	}
	all := make(map[string]life)
	for n := range asaastest.Lives("order-1") {
		for known := range len(asaastest.Lives("order-1")[n].Bodies) {
			l := asaastest.Lives("order-1")[n]
			all[l.Charge.Payment.ID] = life{l, known}
			know(t, pool, l.Bodies[:known]...)
			fake.Emit(l.Bodies...)
		}
	}
	reconcile(t, client, pool, gap())
	for id, l := range all {
		if l.Deleted && l.known == 0 {
			continue // made and removed in the gap: it is in no list, and is worth 0
		}
		var status, paid, received, booked, came string
		const query = `select status, paid::text, received::text, (select coalesce(sum(paid), 0)::numeric(9, 2)::text from ledger where charge = id),
			(select coalesce(sum(received), 0)::numeric(9, 2)::text from ledger where charge = id) from asaas_charges where id = $1`
		if err := pool.QueryRow(t.Context(), query, id).Scan(&status, &paid, &received, &booked, &came); err != nil {
			t.Fatalf("%s, of which %d events came: %v", l.Name, l.known, err)
		}
		if l.Deleted { // Asaas does not show it any more: it stays as it was known
			continue
		}
		if status != string(l.Status) || !equal(paid, l.Paid) || !equal(received, l.Received) || !equal(booked, l.Paid) || !equal(came, l.Received) {
			t.Errorf("%s, of which %d events came: %s, paid %s, received %s, booked %s and %s; want %s, %s, %s", l.Name, l.known,
				status, paid, received, booked, came, l.Status, l.Paid, l.Received)
		}
	}
}

func equal(text string, m asaas.Money) bool {
	var got asaas.Money
	return json.Unmarshal([]byte(text), &got) == nil && got.Cmp(m) == 0
}

// pix returns charges by Pix, and the bodies of their events.
func pix(n int) (ids []string, created, received [][]byte) {
	for range n {
		c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
		created, received = append(created, c.Created()), append(received, c.Received())
		ids = append(ids, c.Payment.ID)
	}
	return ids, created, received
}

// through calls before with each request of the client.
type through struct {
	http.RoundTripper
	before func(*http.Request)
}

func (t through) RoundTrip(r *http.Request) (*http.Response, error) {
	t.before(r)
	return t.RoundTripper.RoundTrip(r)
}

func sum(t *testing.T, pool *pgxpool.Pool) (rows int, paid string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select count(*), coalesce(sum(paid), 0)::numeric(12, 2)::text from ledger where paid <> 0`).Scan(&rows, &paid); err != nil {
		t.Fatal(err)
	}
	return rows, paid
}

func TestNoChargeIsMissedWhileItsDayIsReadAndChargesVanish(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	var removed []*asaastest.Charge
	_, created, received := pix(348)
	for range 2 {
		c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
		removed = append(removed, c)
		created = append(created, c.Created()) // the newest: in front of the list
	}
	fake.Emit(slices.Concat(created, received)...)
	var pages atomic.Int32
	client.Transport = through{client.Transport, func(r *http.Request) {
		if r.URL.Query().Get("offset") != "0" && pages.Add(1) <= int32(len(removed)) {
			fake.Emit(removed[pages.Load()-1].Deleted()) // between two pages
		}
	}}
	s := gap()
	report := reconcile(t, client, pool, s)
	if rows, paid := sum(t, pool); rows != 348 || paid != "34800.00" {
		t.Errorf("%d charges are booked, with %s; want 348, with 34800.00. The report: %+v", rows, paid, report)
	}
	if pages.Load() < 2 {
		t.Fatal("nothing vanished while the list was read: this test tries nothing")
	}
}

// As many days are read at once as fit into one answer.
func TestNoDayOfAGapIsMissed(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	s := gap()
	s.Until = s.Since.AddDate(0, 0, 7)
	for n := range 140 {
		c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
		c.Payment.DateCreated = asaas.Date(s.Since.AddDate(0, 0, n%7).Format(time.DateOnly))
		fake.Emit(c.Created())
	}
	if report := reconcile(t, client, pool, s); report.Read != 140 {
		t.Errorf("%d charges are read, want 140", report.Read)
	}
}

func TestNoCardIsMissedThatSettlesWhileTheListIsRead(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	var cards []*asaastest.Charge
	for range 320 {
		c := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
		cards = append(cards, c)
		fake.Emit(c.Created(), c.Confirmed())
	}
	var calls atomic.Int32
	client.Transport = through{client.Transport, func(*http.Request) {
		if n := int(calls.Add(1)) - 1; n < 20 {
			fake.Emit(cards[n*3].Received())
		}
	}}
	reconcile(t, client, pool, gap())
	if rows, paid := sum(t, pool); rows != 320 || paid != "32000.00" {
		t.Errorf("%d cards are booked, with %s; want 320, with 32000.00", rows, paid)
	}
}

func TestARunThatIsBrokenOffGoesOnAtItsDayAndMissesNothing(t *testing.T) {
	t.Parallel()
	charged := testkit.Size(200, 600)
	pool := newTables(t)
	fake, client := newAccount(t)
	var cards []*asaastest.Charge
	for range charged {
		c := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
		cards = append(cards, c)
		fake.Emit(c.Created(), c.Confirmed())
	}
	s := gap()
	s.Calls = 20
	runs, booked := 0, 0
	for {
		report, err := charges.Reconcile(t.Context(), client, pool, s)
		if err != nil {
			t.Fatal(err)
		}
		if runs++; report.Cursor == nil {
			break
		}
		if rows, _ := sum(t, pool); rows == booked && runs > 20 {
			t.Fatalf("%d runs do not come on: %+v", runs, report)
		}
		booked, _ = sum(t, pool)
		text, err := json.Marshal(report.Cursor)
		s = gap()
		s.Calls, s.Resume = 20, new(charges.Cursor)
		if err := errors.Join(err, json.Unmarshal(text, s.Resume)); err != nil {
			t.Fatal(err)
		}
		if runs == 1 { // hours later: the money of some has come
			for _, c := range cards[:charged/2] {
				fake.Emit(c.Received())
			}
		}
	}
	if rows, paid := sum(t, pool); rows != charged || paid != fmt.Sprintf("%d.00", 100*charged) || runs < 2 {
		t.Errorf("after %d runs %d charges are booked, with %s; want %d, with %d.00 after several", runs, rows, paid, charged, 100*charged)
	}
}

func TestARunWithoutAFunctionFillsTheTableAndBooksNothing(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if _, err := pool.Exec(t.Context(), `delete from asaas_charges_since where scope is not null`); err != nil {
		t.Fatal(err)
	}
	fake, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	fake.Emit(c.Created(), c.Received())
	s := gap()
	s.Apply = nil
	if report := reconcile(t, client, pool, s); report.Changed != 1 {
		t.Errorf("%d charges changed, want 1", report.Changed)
	}
	c.Now = time.Now()
	know(t, pool, c.Refunded()) // its first event here: the difference is taken off
	if _, paid := sum(t, pool); paid != "-100.00" {
		t.Errorf("the ledger has %s, want -100.00: another program has booked 100.00 before", paid)
	}
	var since string
	if err := pool.QueryRow(t.Context(), `select since::text from asaas_charges_since where scope = ''`).Scan(&since); err != nil || since != "2019-12-31" {
		t.Errorf("the table is complete since %s, %v; want 2019-12-31, where Since is in Brasília", since, err)
	}
}

func TestTheTableIsNotFilledWhileEventsAreParkedThatNobodyHasBooked(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if _, err := pool.Exec(t.Context(), `delete from asaas_charges_since`); err != nil {
		t.Fatal(err)
	}
	fake, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	fake.Emit(c.Created())
	received := c.Received()
	fake.Emit(received)
	if state, lastError := deliver(t, pool, newEvents(book), received); state != "parked" {
		t.Fatalf("the first event of an old charge is %s: %s, want parked", state, lastError)
	}
	s := gap()
	s.Apply = nil
	if _, err := charges.Reconcile(t.Context(), client, pool, s); err == nil || !strings.Contains(err.Error(), "1 events are parked") {
		t.Errorf("the table was filled: %v; want an error that names the parked event", err)
	}
	if got := query(t, pool, `select count(*) from asaas_charges`); got != "0" {
		t.Errorf("%s charges are in the table, want none", got)
	}
}

func TestADryRunTellsWhatWouldChangeAndChangesNothing(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	created := c.Created()
	know(t, pool, created)
	fake.Emit(created, c.Received())
	s := gap()
	s.DryRun = true
	var told []string
	s.Changed = func(c charges.Change) {
		told = append(told, fmt.Sprintf("%s -> %s, %s", c.Before.Status, c.After.Status, c.Paid()))
	}
	for range 2 {
		reconcile(t, client, pool, s)
	}
	if diff := cmp.Diff([]string{"PENDING -> RECEIVED, 100.00", "PENDING -> RECEIVED, 100.00"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if rows, _ := sum(t, pool); rows != 0 {
		t.Errorf("%d lines are in the ledger, want none", rows)
	}
}

func TestAChargeThatAsaasDoesNotShowIsReportedAndItsRowIsLeft(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	_, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(10000))
	know(t, pool, c.Created())
	report := reconcile(t, client, pool, gap())
	if diff := cmp.Diff([]string{c.Payment.ID}, report.Gone); diff != "" || report.Changed != 0 {
		t.Errorf("%d charges changed, want none; gone (-want +got):\n%s", report.Changed, diff)
	}
	s := gap()
	s.Scope = "shop-2"
	fake, client := newAccount(t)
	fake.Emit(of("another account", asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000)).Created()))
	if report := reconcile(t, client, pool, s); len(report.Gone) > 0 {
		t.Errorf("with the key of another account, %q are gone", report.Gone)
	}
}

func TestAChargeThatCannotBeAppliedIsReportedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	ids, created, received := pix(4)
	fake.Emit(slices.Concat(created, received)...)
	s := gap()
	s.Apply = func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		switch c.After.ID {
		case ids[1]:
			return errors.New("its order is not stored")
		case ids[2]:
			panic("its order is nil")
		}
		return book(ctx, tx, c)
	}
	report, err := charges.Reconcile(t.Context(), client, pool, s)
	if err != nil || len(report.Failed) != 2 || report.Failed[ids[1]] == nil || report.Failed[ids[2]] == nil {
		t.Errorf("failed: %v, %v; want %s only", report.Failed, err, ids[1:3])
	}
	if rows, paid := sum(t, pool); rows != 2 || paid != "200.00" {
		t.Errorf("%d charges are booked, with %s; want 2, with 200.00", rows, paid)
	}
	reconcile(t, client, pool, gap()) // the order is stored by then
	if _, paid := sum(t, pool); paid != "400.00" {
		t.Errorf("the next run makes it %s, want 400.00", paid)
	}
}

func TestAPageOfLongChargesIsRead(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	for range 100 {
		c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(100))
		c.Payment.Description = value.Of(strings.Repeat("x", 20_000))
		fake.Emit(c.Created())
	}
	if report := reconcile(t, client, pool, gap()); report.Read != 100 {
		t.Errorf("%d charges are read", report.Read)
	}
}

// Its clock and ours differ, and its lists may be late.
func TestAnEventOfTheHourBeforeAReadingIsNewer(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	fake.Emit(c.Created())
	c.Now = time.Now().Add(-30 * time.Minute).In(time.FixedZone("of Asaas", -3*60*60))
	received := c.Received()
	reconcile(t, client, pool, gap())
	know(t, pool, received)
	if _, paid := sum(t, pool); paid != "100.00" {
		t.Errorf("the ledger has %s, want 100.00", paid)
	}
}

func TestARunStopsWhereAsaasWantsAPause(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	fake, client := newAccount(t)
	fake.Limit = asaastest.RateLimit{Requests: 2, Window: 12 * time.Hour}
	report, err := charges.Reconcile(t.Context(), client, pool, gap())
	if err != nil || report.Cursor == nil || report.Again < 11*time.Hour {
		t.Errorf("the run ended with %+v, %v; want a cursor, and a pause of 12 hours", report, err)
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		why, want string
		s         charges.Settings
	}{
		{"no begin", "there is no Since", charges.Settings{}},
		{"it ends before", "ends before it begins", charges.Settings{Since: now, Until: now.Add(-time.Hour), Apply: book}},
		{"a filling run that ends before now", "reads until now", charges.Settings{Since: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)}},
		{"too few calls", "too few Calls", charges.Settings{Since: now.Add(-time.Hour), Calls: 3}},
		{"a cursor of another version", "another version", charges.Settings{Resume: &charges.Cursor{Since: now.Add(-time.Hour), Until: now, Scan: 9}}},
		{"a cursor without a day", "another version", charges.Settings{Resume: &charges.Cursor{Since: now.Add(-time.Hour), Until: now, Day: "soon"}}},
	} {
		if _, err := charges.Reconcile(t.Context(), nil, nil, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.why, err, c.want)
		}
	}
}

// The row that is missing would be taken for a charge that nobody has booked, once the table is complete.
func TestATableWithAChargeThatCouldNotBeCopiedIsNotComplete(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if _, err := pool.Exec(t.Context(), `delete from asaas_charges_since where scope is not null; create function fail() returns trigger language plpgsql as
		$$ begin raise exception 'the disk is full' using errcode = '53100'; end $$; create trigger fail before insert on asaas_charges execute function fail()`); err != nil {
		t.Fatal(err)
	}
	fake, client := newAccount(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	fake.Emit(c.Created(), c.Received())
	s := gap()
	s.Apply = nil
	report, err := charges.Reconcile(t.Context(), client, pool, s)
	if err == nil || len(report.Failed) != 1 || report.Cursor != nil {
		t.Errorf("the run ended with %+v, %v; want one charge that failed, and an error", report, err)
	}
	if got := query(t, pool, `select count(*) from asaas_charges_since where scope = ''`); got != "0" {
		t.Error("the table is recorded as complete")
	}
}

func TestAListWithoutAnEndEndsTheRun(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	charge := func(id string) string { return `{"id":"` + id + `","status":"PENDING","value":1}` }
	for why, data := range map[string]string{
		"the same page for ever":           charge("pay_1") + "," + charge("pay_2"),
		"one row for ever, twice a page":   charge("pay_1") + "," + charge("pay_1"),
		"pages of one row":                 charge("pay_1"),
		"empty pages that are not the end": ``,
	} {
		fake, client := newAccount(t)
		calls := 0
		client.Transport = through{client.Transport, func(*http.Request) {
			if calls++; calls == 200 {
				fake.Close()
			}
			fake.InjectAPI(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"object":"list","hasMore":true,"data":[` + data + `]}`))
			})
		}}
		s := gap()
		s.Since = time.Now().AddDate(0, 0, -3)
		if _, err := charges.Reconcile(t.Context(), client, pool, s); err == nil || calls >= 200 {
			t.Errorf("%s: after %d calls the run ended with %v", why, calls, err)
		}
	}
}
