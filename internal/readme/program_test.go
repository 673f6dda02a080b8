//go:build long

package readme

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const token = "right"

// patience bounds each wait. It is much longer than anything takes.
const patience = 2 * time.Minute

// shop is the README's program with its database, which knows the charges that another program has booked.
type shop struct {
	pool    *pgxpool.Pool
	deliver func(token, body string) (status int)
}

func openShop(t *testing.T) *shop {
	t.Helper()
	url := idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), tables(t)); err != nil {
		t.Fatal(err)
	}
	deliver, _ := start(t, build(t), url, token)
	if err := charges.Filled(t.Context(), pool, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	return &shop{pool, deliver}
}

// send delivers an event of a charge as Asaas does, and waits until it is done: the next one is handled after it,
// whatever its time.
func (s *shop) send(t *testing.T, body []byte) {
	t.Helper()
	if got := s.deliver(token, string(body)); got != http.StatusOK {
		t.Fatalf("%s was answered %d, want 200", body, got)
	}
	e := asaas.Identify(body)
	late := time.After(patience)
	for state := ""; state != "done"; {
		var failure string
		const query = `select state, coalesce(last_error, '') from idem_events where event = 'asaas//' || $1`
		if err := s.pool.QueryRow(t.Context(), query, e.ID).Scan(&state, &failure); err != nil || failure != "" {
			t.Fatalf("%s %s is %q: %s, %v", e.Type, e.ID, state, failure, err)
		}
		select {
		case <-late:
			t.Fatalf("%s is %s, and not done", e.ID, state)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestTheProgramIsRightAboutMoneyInEveryLifeOfACharge(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for _, order := range []struct {
		why   string
		order func(bodies [][]byte) [][]byte
	}{
		{"in their order, each twice", func(bodies [][]byte) (all [][]byte) {
			for _, body := range bodies {
				all = append(all, body, body)
			}
			return all
		}},
		{"the newest first, and all of them again", func(bodies [][]byte) [][]byte {
			slices.Reverse(bodies)
			return slices.Concat(bodies, bodies)
		}},
		{"only the newest: the others were lost", func(bodies [][]byte) [][]byte { return bodies[len(bodies)-1:] }},
	} {
		for n, life := range asaastest.Lives("to be replaced") {
			t.Run(life.Name+", "+order.why, func(t *testing.T) {
				t.Parallel()
				id := fmt.Sprintf("order-%d %s", n, order.why)
				if _, err := s.pool.Exec(t.Context(), `insert into orders (id, total) values ($1, 100)`, id); err != nil {
					t.Fatal(err)
				}
				for n, body := range life.Bodies {
					life.Bodies[n] = bytes.ReplaceAll(body, []byte("to be replaced"), []byte(id))
				}
				for _, body := range order.order(life.Bodies) {
					s.send(t, body)
				}
				var paid asaas.Money
				if err := s.pool.QueryRow(t.Context(), `select paid from orders where id = $1`, id).Scan(&paid); err != nil || paid.Cmp(life.Paid) != 0 {
					t.Errorf("the order is paid with %s, %v; want %s", paid, err, life.Paid)
				}
			})
		}
	}
}

func TestTheProgramAddsUpTheChargesOfOneOrder(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	if _, err := s.pool.Exec(t.Context(), `insert into orders (id, total) values ('order-1', 400)`); err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"100.00", "200.00", "300.00"} {
		c := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(10000))
		c.Payment.ExternalReference = value.Of("order-1")
		s.send(t, c.Created())
		s.send(t, c.Received())
		var paid string
		if err := s.pool.QueryRow(t.Context(), `select paid::text from orders`).Scan(&paid); err != nil || paid != want {
			t.Errorf("after charge %d the order is paid with %s, %v; want %s of 400.00", n+1, paid, err, want)
		}
	}
}

func TestTheProgramShipsAnOrderOnceWhenItsPriceIsSettled(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	if _, err := s.pool.Exec(t.Context(), `insert into orders (id, total) values ('order-1', 100)`); err != nil {
		t.Fatal(err)
	}
	shipAt := func() (at *time.Time) {
		t.Helper()
		if err := s.pool.QueryRow(t.Context(), `select ship_at from orders`).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	half := func() *asaastest.Charge {
		c := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(5000))
		c.Payment.ExternalReference = value.Of("order-1")
		s.send(t, c.Created())
		return c
	}
	first, second := half(), half()
	s.send(t, first.Received())
	if at := shipAt(); at != nil {
		t.Errorf("half of the price is paid, and the order is shipped at %s", at)
	}
	s.send(t, second.Received())
	at := shipAt()
	if at == nil {
		t.Fatal("the price is paid, and the order is not shipped")
	}
	s.send(t, second.Refunded())
	s.send(t, half().Received())
	if again := shipAt(); again == nil || !again.Equal(*at) {
		t.Errorf("it is shipped at %s, and again at %v", at, again)
	}
}

// body returns a body for tests that look at the answer only.
func body() string { return string(asaastest.Event(asaas.EventPaymentReceived)) }

func TestTheProgramRefusesAWrongToken(t *testing.T) {
	t.Parallel()
	if got := openShop(t).deliver("wrong", body()); got != http.StatusUnauthorized {
		t.Errorf("a delivery with the wrong token was answered %d, want 401", got)
	}
}

func TestTheProgramWithoutATokenAsksForRedelivery(t *testing.T) {
	t.Parallel()
	deliver, _ := start(t, build(t), idemtest.URL(t), "")
	for _, token := range []string{"", "any"} {
		if got := deliver(token, body()); got != http.StatusServiceUnavailable {
			t.Errorf("a delivery with the token %q was answered %d, want 503", token, got)
		}
	}
}

func TestTheProgramTellsThatDeliveriesFail(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	deliver, addr := start(t, build(t), url, "right")
	awaitHealth(t, addr, http.StatusOK, "") // soon after the start: it asks Postgres, which has 2 seconds
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `alter table idem_events rename to mislaid`); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		deliver("right", body())
	}
	awaitHealth(t, addr, http.StatusServiceUnavailable, "5 deliveries have failed in a row")
}

// The Spanish README prints its program in two blocks.
func TestTheProgramOfTheSpanishREADMESetsAnOrderToTheSumOfItsPayments(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	parts := blocks(t, "README.es.md", "go")
	if _, err := db.Exec(t.Context(), blocks(t, "README.es.md", "sql")[0].text+`; insert into orders (id, total) values ('order-1', 2990)`); err != nil {
		t.Fatal(err)
	}
	_, addr := start(t, buildInto(t, t.TempDir(), block{text: parts[0].text + parts[1].text}), url, token)
	pay := func(layout zeltapaytest.Layout, transaction string, cents int) {
		t.Helper()
		changes := []zeltapaytest.Change{zeltapaytest.Set("transaction.amount", cents), zeltapaytest.Set("transaction.externalPaymentId", transaction), zeltapaytest.Set("metadata.orderId", "order-1")}
		if layout == zeltapaytest.Nested {
			changes = []zeltapaytest.Change{zeltapaytest.Set("paymentLink.amount", cents), zeltapaytest.Set("paymentLink.metadata.orderId", "order-1")}
		}
		r := zeltapaytest.Request("http://"+addr+"/webhooks/zeltapay", token, layout.Event(zeltapay.EventPaymentSuccess, changes...))
		resp, err := http.DefaultClient.Do(r.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		late := time.After(patience)
		for open := 1; open > 0; {
			if err := db.QueryRow(t.Context(), `select count(*) from idem_event_log where state <> 'done'`).Scan(&open); err != nil {
				t.Fatal(err)
			}
			select {
			case <-late:
				t.Fatalf("%d events are not done", open)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	want := func(paid int64, shipped bool) {
		t.Helper()
		var gotPaid int64
		var gotShipped bool
		err := db.QueryRow(t.Context(), `select paid, ship_at is not null from orders`).Scan(&gotPaid, &gotShipped)
		if err != nil || gotPaid != paid || gotShipped != shipped {
			t.Errorf("the order is paid with %d and shipped: %t, %v; want %d, %t", gotPaid, gotShipped, err, paid, shipped)
		}
	}
	pay(zeltapaytest.Flat, "t1", 100)
	want(100, false) // one cent pays no order, nor does a dollar
	pay(zeltapaytest.Flat, "t1", 100)
	want(100, false) // the same transaction by a second event
	pay(zeltapaytest.Nested, "", 100)
	want(100, false) // the same link in the other layout
	pay(zeltapaytest.Flat, "t2", 2890)
	want(2990, true)
}

// awaitHealth waits until the program's health is of a status, and says something. It looks once a second.
func awaitHealth(t *testing.T, addr string, want int, text string) {
	t.Helper()
	late := time.After(patience)
	for {
		status, says := health(t, addr)
		if status == want && strings.Contains(says, text) {
			return
		}
		select {
		case <-late:
			t.Fatalf("its health is %d, want %d %q: %s", status, want, text, says)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func health(t *testing.T, addr string) (status int, says string) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/health/webhooks")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// built is the README's program, built once for all tests.
var built struct {
	sync.Once
	folder string
}

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(built.folder)
	os.Exit(status)
}

// build builds the README's program, for an address of the tests' own.
func build(t *testing.T) (binary string) {
	t.Helper()
	built.Do(func() {
		folder, err := os.MkdirTemp("", "readme")
		if err != nil {
			t.Fatal(err)
		}
		built.folder = folder
		buildInto(t, folder, program(t))
	})
	return filepath.Join(built.folder, "program")
}

// buildInto builds a program, for an address of the tests' own.
func buildInto(t *testing.T, folder string, program block) (binary string) {
	t.Helper()
	code := strings.Replace(program.text, `":8080"`, `os.Getenv("ADDR")`, 1)
	binary = filepath.Join(folder, "program")
	run(t, "build", "-o", binary, write(t, folder, code))
	return binary
}

// start runs the program until the test ends, and returns how to deliver to it,
// and where it listens.
func start(t *testing.T, binary, database, token string) (deliver func(token, body string) (status int), addr string) {
	t.Helper()
	deliver, addr, _ = startLogged(t, binary, database, token)
	return deliver, addr
}

// said holds the log of a program.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// startLogged is start, with the program's log.
func startLogged(t *testing.T, binary, database, token string) (deliver func(token, body string) (status int), addr string, log *said) {
	t.Helper()
	log = new(said)
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), "ADDR=127.0.0.1:0", "DATABASE_URL="+database, "ASAAS_WEBHOOK_TOKEN="+token, "ZELTAPAY_WEBHOOK_SECRET="+token)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the end of the test's context has killed it
		if t.Failed() {
			t.Logf("the program said:\n%s", log)
		}
	})
	const listening = "receiving webhooks address=" // any free port: it says which
	waitFor(t, log, listening)
	_, addr, _ = strings.Cut(log.String(), listening)
	addr, _, _ = strings.Cut(addr, "\n")
	return func(token, body string) int { return post(t, "http://"+addr+"/webhooks/asaas", token, body) }, addr, log
}

func post(t *testing.T, url, token, body string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("asaas-access-token", token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
