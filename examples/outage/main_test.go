package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// testWeekend returns a weekend with a database of its own.
func testWeekend(t *testing.T, out io.Writer, parkAfter int) *weekend {
	t.Helper()
	s, err := newShop(t.Context(), idemtest.Pool(t), parkAfter)
	if err != nil {
		t.Fatal(err)
	}
	w := newWeekend(s, out)
	t.Cleanup(w.end)
	return w
}

func TestProgramEndsByItself(t *testing.T) {
	t.Parallel()
	idemtest.URL(t) // without any Postgres, the test ends here
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "\nEach payment is booked once, in order.") {
		t.Error(out.String())
	}
}

func TestTimelineTellsTheStory(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := testWeekend(t, &out, neverPark)
	if err := w.play(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.check(t.Context()); err != nil {
		t.Error(err)
	}
	rest := out.String()
	for _, line := range []string{
		"Fri 17:00             the shop is deployed: version 1\n",
		"Fri 17:00  Fri 20:20  3 payments; deliveries answered 2 x 200, 1 x 200 (duplicate), 1 x 200 (the answer was lost)\n",
		"Fri 21:00             version 2 is deployed, without its migration\n",
		"Fri 22:00  Fri 22:10  1 payment; deliveries answered 5 x 503\n",
		"Fri 22:10             Asaas writes an e-mail: 5 attempts failed\n",
		"Sat 01:50             Asaas writes an e-mail: 10 attempts failed\n",
		"Sat 10:50             Asaas writes an e-mail: 15 attempts failed\n",
		"Sat 10:50             Asaas stops the queue\n",
		"Sat 11:20  Mon 08:20  28 payments\n",
		`Mon 09:00             on call: Asaas says of the webhook "shop": stopped true, 15 failures`,
		`Mon 09:00             on call: the shop says of pay_1_a1B2c3D4e50004: failed 15 times: ERROR: column "fee"`,
		"Mon 09:00             on call: asaas: Recover(" + w.webhook + "): nothing was changed:",
		"Mon 09:20             the migration is done\n",
		"Mon 09:20             on call: " + asaas.RecoveryProgress{Step: asaas.RecoveryProbed}.String() + "\n",
		"Mon 09:20             Asaas starts the queue, 36 events wait in it\n",
		"Mon 09:20             deliveries answered 36 x 200, 2 x 200 (duplicate)\n",
		"Mon 09:20             on call: " + asaas.RecoveryProgress{Step: asaas.RecoveryDone}.String() + "\n",
		"Mon 09:20             on call: nothing is owed of what was delivered: no event is parked, and none waits for another",
		"Mon 10:00  Mon 11:40  2 payments; deliveries answered 2 x 200\n",
		"2026-08-14         5       296.00       296.00  1 to 5\n",
		"2026-08-17         8       512.90       512.90  34 to 41\n",
		"The shop knows of 41 events that are done, and of 0 that are not.\n",
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Errorf("the timeline lacks, in its place, the line\n%s", line)
			continue
		}
		rest = after
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestWhatIsWrongInTheDatabaseIsSaid(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, sql, want string
	}{
		{
			"a payment booked twice",
			`insert into entries (number, payment, amount, day) select 42, payment, amount, day from entries where number = 7`,
			"the ledger has entry 42: pay_1_a1B2c3D4e50007 of R$ 19.90 on 2026-08-15, for which there is no payment",
		},
		{
			"a payment that is lost",
			`delete from entries where number = 41`,
			"the ledger lacks entry 41: pay_1_a1B2c3D4e50041 of R$ 98.50 on 2026-08-17",
		},
		{
			"two payments that changed places",
			`update entries set payment = case number when 5 then 'pay_1_a1B2c3D4e50006' else 'pay_1_a1B2c3D4e50005' end where number in (5, 6)`,
			"the ledger has entry 5: pay_1_a1B2c3D4e50006 of R$ 85.40 on 2026-08-14, should have entry 5: pay_1_a1B2c3D4e50005 of R$ 85.40 on 2026-08-14",
		},
		{
			"a gap, as a dry run that is not rolled back would leave",
			`update entries set number = 42 where number = 41`,
			"the ledger has entry 42: pay_1_a1B2c3D4e50041 of R$ 98.50 on 2026-08-17, should have entry 41:",
		},
		{
			"a cent too much",
			`update entries set amount = amount + 0.01 where number = 1`,
			"the ledger has entry 1: pay_1_a1B2c3D4e50001 of R$ 33.01 on 2026-08-14, should have entry 1: pay_1_a1B2c3D4e50001 of R$ 33.00",
		},
		{
			"an event that nobody sent",
			`insert into idem_events (event, type, key, state) values ('asaas//evt_1', 'PAYMENT_RECEIVED', 'pay_1', 'done')`,
			"the shop must know of 41 events that are done, and of none else",
		},
		{
			"an event that is not done",
			`update idem_events set state = 'parked' where key = 'pay_1_a1B2c3D4e50009'`,
			"the shop must know of 41 events that are done, and of none else",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := testWeekend(t, io.Discard, neverPark)
			if err := w.play(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := w.shop.pool.Exec(t.Context(), test.sql); err != nil {
				t.Fatal(err)
			}
			if err := w.check(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want: %s", err, test.want)
			}
		})
	}
}

// The comment of neverPark about the default is true to its end: every payment
// is booked once, though not in order.
func TestQueueIsNeverStoppedWhereEventsAreParkedAndThenReplayed(t *testing.T) {
	t.Parallel()
	w := testWeekend(t, io.Discard, idem.NewProcessor(nil, asaas.NewDispatcher()).ParkAfter)
	w.open(friday)
	w.shop.deploy(version2)
	w.until(monday)
	emails := 0
	for _, e := range w.Timeline() {
		switch e.Kind {
		case asaastest.Emailed:
			emails++
		case asaastest.Paused:
			t.Errorf("the queue was stopped at %s", e.At)
		}
	}
	stats, err := w.shop.version.Load().Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if stats.Parked.Events < 2 || emails < 2 {
		t.Errorf("%d events are parked after %d e-mails: the queue did not go on", stats.Parked.Events, emails)
	}
	if got := w.Webhook(w.webhook); got.Interrupted || got.Pending == 0 {
		t.Errorf("the queue is not slowed down only: %+v", got)
	}

	if err := w.shop.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.recover(t.Context(), w.Client()); err != nil {
		t.Fatal(err)
	}
	w.until(w.Now().Add(time.Hour))
	ledger, err := w.shop.ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	booked := make(map[payment]int)
	for _, e := range ledger {
		booked[e.payment]++
	}
	for _, p := range w.paid {
		if booked[p] != 1 {
			t.Errorf("%+v is booked %d times", p, booked[p])
		}
	}
	if len(ledger) != len(w.paid) {
		t.Errorf("%d entries for %d payments", len(ledger), len(w.paid))
	}
}

func TestRecoverThatDoesNotRefuseEndsTheStory(t *testing.T) {
	t.Parallel()
	w := testWeekend(t, io.Discard, neverPark)
	w.shop.deploy(version2)
	w.open(friday)
	w.until(monday)
	if err := w.shop.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := w.recoverTooEarly(t.Context(), w.Client())
	if err == nil || err.Error() != "the queue was started while the shop fails" {
		t.Errorf("got %v", err)
	}
}

func TestInterruptEndsTheWeekend(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	w := testWeekend(t, stopper{"Asaas stops the queue", stop}, neverPark)
	if err := w.play(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// stopper ends a context when the timeline has come so far.
type stopper struct {
	at   string
	stop context.CancelFunc
}

func (s stopper) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return len(p), nil
}
