package readme

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/freeport"
)

const token = "right"

// patience is a last resort: what is awaited comes much earlier, or never.
const patience = 2 * time.Minute

// event is an event of a charge, which was made for an order: reference is its
// externalReference as JSON.
func event(name, charge, reference string) string {
	return fmt.Sprintf(`{"id":"evt_%[1]s&%[2]s","event":"%[1]s","dateCreated":"2026-11-20 10:00:00",
		"payment":{"object":"payment","id":"%[2]s","value":29.9,"status":"%[3]s","externalReference":%[4]s}}`,
		name, charge, strings.TrimPrefix(name, "PAYMENT_"), reference)
}

const (
	confirmed = "PAYMENT_CONFIRMED"
	received  = "PAYMENT_RECEIVED"
	refunded  = "PAYMENT_REFUNDED"
)

// shop is the README's program with its database.
type shop struct {
	*testing.T
	pool    *pgxpool.Pool
	deliver func(token, body string) (status int)
}

// orders is the README's table, with a count of how often an order was paid.
const orders = `create table orders (id text primary key, paid_at timestamptz, refunded_at timestamptz, times int not null default 0);
	create function count_paid() returns trigger language plpgsql as $$ begin new.times = old.times + 1; return new; end $$;
	create trigger count_paid before update on orders for each row when (old.paid_at is distinct from new.paid_at) execute function count_paid()`

func openShop(t *testing.T) *shop {
	t.Helper()
	url := idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	deliver, _ := start(t, build(t), url, token)
	return &shop{t, pool, deliver}
}

// sell stores an order.
func (s *shop) sell(order string) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), `insert into orders (id) values ($1)`, order); err != nil {
		s.Fatal(err)
	}
}

// send delivers events of a charge as Asaas does.
func (s *shop) send(charge, reference string, names ...string) {
	s.Helper()
	for _, name := range names {
		if got := s.deliver(token, event(name, charge, reference)); got != http.StatusOK {
			s.Errorf("%s of %s was answered %d, want 200", name, charge, got)
		}
	}
}

// await waits until all events of a charge are done, or all of them have failed.
func (s *shop) await(charge, want string) {
	s.Helper()
	const query = `select coalesce(string_agg(distinct state || case when attempts > 0 and state <> 'done' then ' ' || last_error else '' end, ', '), 'none')
		from idem_events where key = $1`
	late := time.After(patience)
	for {
		var is string
		if err := s.pool.QueryRow(s.Context(), query, charge).Scan(&is); err != nil {
			s.Fatal(err)
		}
		if is == want {
			return
		}
		select {
		case <-late:
			s.Fatalf("the events of %s are %q, want %q", charge, is, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// order is an order as the shop sees it.
type order struct {
	Paid, Refunded bool
	Times          int // it was paid
}

func (s *shop) is(why, id string, want order) {
	s.Helper()
	var got order
	const query = `select paid_at is not null, refunded_at is not null, times from orders where id = $1`
	if err := s.pool.QueryRow(s.Context(), query, id).Scan(&got.Paid, &got.Refunded, &got.Times); err != nil || got != want {
		s.Errorf("%s: the order is %+v, %v; want %+v", why, got, err, want)
	}
}

func TestTheProgramPaysEachOrderOnceWhateverTheOrderOfItsEvents(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("unpaid")
	if got := s.deliver("wrong", event(received, "pay_0_a1B2c3D4e5F6g7", `"unpaid"`)); got != http.StatusUnauthorized {
		t.Errorf("a delivery with the wrong token was answered %d, want 401", got)
	}
	for i, c := range []struct {
		why    string
		events []string
		want   order
	}{
		{"a card: the money comes a month later", []string{confirmed, received}, order{Paid: true, Times: 1}},
		{"they come in reverse", []string{received, confirmed}, order{Paid: true, Times: 1}},
		{"each comes twice", []string{confirmed, confirmed, received, received}, order{Paid: true, Times: 1}},
		{"Pix is never confirmed, and comes twice", []string{received, received}, order{Paid: true, Times: 1}},
		{"it is refunded", []string{received, refunded}, order{Paid: true, Refunded: true, Times: 1}},
		{"the refund comes first", []string{refunded, received}, order{Paid: true, Refunded: true, Times: 1}},
		{"a redelivery of yesterday comes after the refund", []string{confirmed, received, refunded, confirmed, received}, order{Paid: true, Refunded: true, Times: 1}},
	} {
		id, charge := fmt.Sprintf("order-%d", i), fmt.Sprintf("pay_%d_a1B2c3D4e5F6g7", i+1)
		s.sell(id)
		for _, name := range c.events {
			s.send(charge, `"`+id+`"`, name)
			s.await(charge, "done") // so that the next one is handled after it, whatever its time
		}
		s.is(c.why, id, c.want)
	}
	s.is("nobody has paid it", "unpaid", order{})
}

// The webhook is faster than the application's own insert.
func TestTheProgramPaysAnOrderThatIsStoredAfterItsPayment(t *testing.T) {
	t.Parallel()
	const early, unknown = "pay_1_a1B2c3D4e5F6g7", "pay_2_b2C3d4E5f6G7h8"
	s := openShop(t)
	s.send(early, `"order-1"`, confirmed)
	s.send(unknown, `"order-2"`, received)
	s.await(early, "pending the order of charge "+early+" is not stored")
	s.sell("order-1")
	s.await(early, "done") // it is tried again by itself
	s.is("it was stored late", "order-1", order{Paid: true, Times: 1})
	s.await(unknown, "pending the order of charge "+unknown+" is not stored") // nothing hides it
}

// Nobody's order waits for a charge that a person made at Asaas.
func TestTheProgramIsDoneWithAChargeMadeByHand(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("order-1")
	for charge, reference := range map[string]string{"pay_1_a1B2c3D4e5F6g7": `null`, "pay_2_b2C3d4E5f6G7h8": `""`} {
		s.send(charge, reference, confirmed, received, refunded)
		s.await(charge, "done")
	}
	s.is("it is another's", "order-1", order{})
}

func TestTheProgramWithoutATokenAsksForRedelivery(t *testing.T) {
	t.Parallel()
	deliver, _ := start(t, build(t), idemtest.URL(t), "")
	for _, token := range []string{"", "any"} {
		if got := deliver(token, event(received, "pay_1_a1B2c3D4e5F6g7", `"order-1"`)); got != http.StatusServiceUnavailable {
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
		deliver("right", event(received, "pay_1_a1B2c3D4e5F6g7", `"order-1"`))
	}
	awaitHealth(t, addr, http.StatusServiceUnavailable, "5 deliveries have failed in a row")
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
	run(t, "build", "-o", binary, write(t, code))
	return binary
}

// start runs the program until the test ends, and returns how to deliver to it,
// and where it listens.
func start(t *testing.T, binary, database, token string) (deliver func(token, body string) (status int), addr string) {
	t.Helper()
	deliver, addr, _ = startLogged(t, binary, database, token)
	return deliver, addr
}

// said is what a program has said until now.
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
	addr, log = freeAddr(t), new(said)
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), "ADDR="+addr, "DATABASE_URL="+database, "ASAAS_WEBHOOK_TOKEN="+token, "ZELTAPAY_WEBHOOK_SECRET="+token)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the end of the test's context has killed it
		if t.Failed() {
			t.Logf("the program said:\n%s", log)
		}
	})
	await(t, addr)
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

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return freeport.Address(port)
}

// await waits until somebody listens.
func await(t *testing.T, addr string) {
	t.Helper()
	late := time.After(patience)
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-late:
			t.Fatalf("the program does not listen: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
