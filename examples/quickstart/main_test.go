package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// testShop returns a shop with a database of its own, and where it serves.
func testShop(t *testing.T) (s *shop, url string) {
	t.Helper()
	s, err := newShop(t.Context(), idemtest.Pool(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.routes())
	ctx, stop := context.WithCancel(t.Context())
	worked := make(chan error)
	go func() {
		worked <- s.whileWorking(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		server.Close()
		stop()
		if err := <-worked; err != nil {
			t.Error(err)
		}
	})
	return s, server.URL
}

func TestDayEndsAsItShould(t *testing.T) {
	t.Parallel()
	s, url := testShop(t)
	var out strings.Builder
	if err := s.play(t.Context(), &out, url); err != nil {
		t.Error(err)
	}
	for _, line := range []string{
		"Asaas      PAYMENT_RECEIVED          A-1001, ten at once                 10 x 200: 1 pending, 9 duplicate, then done",
		"Asaas      PAYMENT_RECEIVED          A-1005, forged: a guessed token     401 refused (wrong_token)",
		"Zelta Pay  payment.success           Z-2001, there is no USD ledger      200 pending, then retrying",
		"At noon the shop opens its ledger for USD. What failed is tried again: Z-2001 is booked.",
		"Zelta Pay  payment.success           Z-2001 again, ten at once           10 x 200: 10 duplicate",
		"Zelta Pay  payment.success           Z-2001 in the other layout          200 pending, then done",
		"Zelta Pay  payment.success           Z-2003, a test: no money moved      200 ignored",
		"A-1001     149.90 BRL  paid            149.90 BRL  1",
		"Z-2001      49.00 USD  paid             49.00 USD  1",
		"A-1003      59.90 BRL  refunded                 -  3, 5",
		"none                -  not asked for    29.90 BRL  4",
		"asaas       10         0       0          2  PAYMENT_BY_PIGEON, PAYMENT_CHECKOUT_VIEWED",
		"Each payment is booked once, as it should be.",
	} {
		if !strings.Contains(out.String(), "\n"+line) {
			t.Errorf("the output lacks the line\n%s", line)
		}
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
			`insert into entries (currency, number, order_id, payment, kind, amount) select currency, 6, order_id, payment, 'again', amount from entries where payment = 'pay_1_a1B2c3D4e51001'`,
			`must not hold order "A-1001" of 149.90 BRL, paid, with 299.80 booked in entries [1, 6]`,
		},
		{
			"a cent too much",
			`update entries set amount = amount + 0.01 where payment = 'pl_2001'`,
			`must not hold order "Z-2001" of 49.00 USD, paid, with 49.01 booked in entries [1]`,
		},
		{
			"a payment that is lost",
			`delete from entries where order_id is null`,
			`must hold order "" of 0.00 BRL, not asked for, with 29.90 booked in entries [4]`,
		},
		{
			"money for an order of somebody else",
			`insert into entries (currency, number, order_id, payment, kind, amount) values ('USD', 3, 'X-1', 'pay_1_a1B2c3D4e51007', 'received', 1)`,
			`must not hold order "X-1" of 0.00 USD, not asked for, with 1.00 booked in entries [3]`,
		},
		{
			"an order that is not paid",
			`update orders set paid_at = null where id = 'A-1002'`,
			`must not hold order "A-1002" of 1200.00 BRL, open, with 1200.00 booked in entries [2]`,
		},
		{
			"an event that is forgotten",
			`delete from idem_events where type = 'PAYMENT_CREATED'`,
			`must not hold 8 done, 0 pending, 0 failed and 2 unhandled events of asaas`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, url := testShop(t)
			if err := s.play(t.Context(), io.Discard, url); err != nil {
				t.Fatal(err)
			}
			if _, err := s.pool.Exec(t.Context(), test.sql); err != nil {
				t.Fatal(err)
			}
			err := s.check(t.Context(), io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want: %s", err, test.want)
			}
		})
	}
}

func TestWrongAnswerIsSaid(t *testing.T) {
	t.Parallel()
	s, url := testShop(t)
	p := provider{http.DefaultClient, url}
	wrong, err := s.deliverAll(t.Context(), io.Discard, p, []delivery{
		{unasked.event(asaas.EventPaymentCreated), "the first", once, "200 pending, then done"},
		{unasked.event(asaas.EventPaymentCreated), "the second", once, "200 pending, then done"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`PAYMENT_CREATED (the second) was answered "200 duplicate", should be "200 pending, then done"`}
	if diff := cmp.Diff(want, texts(wrong)); diff != "" {
		t.Error(diff)
	}
}

func TestInterruptEndsTheDay(t *testing.T) {
	t.Parallel()
	s, url := testShop(t)
	ctx, stop := context.WithCancel(t.Context())
	err := s.play(ctx, stopper{"A-1002, three times", stop}, url)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	held, err := s.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := held.orders[1].String(); got != `order "A-1002" of 1200.00 BRL, paid, with 0.00 booked in entries []` {
		t.Errorf("the day went on: %s", got)
	}
}

func TestEveryOrderIsShown(t *testing.T) {
	t.Parallel()
	s, url := testShop(t)
	if _, err := s.pool.Exec(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(url + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"A-1001     149.90 BRL  open", "Z-2003      12.34 USD  open", "zeltapay     0"} {
		if !strings.Contains(string(body), "\n"+line) {
			t.Errorf("the page lacks %q:\n%s", line, body)
		}
	}
}

// stopper ends a context when the day has come so far.
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

func texts(errs []error) (list []string) {
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}
