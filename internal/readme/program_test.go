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
	"github.com/paghooks/paghooks/internal/testkit"
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

// charges is the README's table, with a count of how often a charge was paid.
const charges = `create table charges (id text primary key, order_id text, value numeric, paid_at timestamptz, returned_at timestamptz, times int not null default 0);
	create function count_paid() returns trigger language plpgsql as $$ begin new.times = new.times + 1; return new; end $$;
	create trigger count_paid before insert on charges for each row when (new.paid_at is not null) execute function count_paid();
	create trigger count_paid_later before update on charges for each row when (old.paid_at is distinct from new.paid_at) execute function count_paid()`

func openShop(t *testing.T) *shop {
	t.Helper()
	url := idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), charges); err != nil {
		t.Fatal(err)
	}
	deliver, _ := start(t, build(t), url, token)
	return &shop{t, pool, deliver}
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

// charge is a charge as the shop sees it.
type charge struct {
	Order          string
	Paid, Returned bool
	Times          int // it was paid
}

func (s *shop) is(why, id string, want charge) {
	s.Helper()
	var got charge
	const query = `select coalesce(order_id, 'none'), paid_at is not null, returned_at is not null, times from charges where id = $1`
	if err := s.pool.QueryRow(s.Context(), query, id).Scan(&got.Order, &got.Paid, &got.Returned, &got.Times); err != nil || got != want {
		s.Errorf("%s: the charge is %+v, %v; want %+v", why, got, err, want)
	}
}

func TestTheProgramPaysEachChargeOnceWhateverTheOrderOfItsEvents(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	if got := s.deliver("wrong", event(received, "pay_0_a1B2c3D4e5F6g7", `"unpaid"`)); got != http.StatusUnauthorized {
		t.Errorf("a delivery with the wrong token was answered %d, want 401", got)
	}
	for i, c := range []struct {
		why       string
		reference string // as JSON
		events    []string
		want      charge
	}{
		{"a card: the money comes a month later", `"order-1"`, []string{confirmed, received}, charge{"order-1", true, false, 1}},
		{"they come in reverse", `"order-1"`, []string{received, confirmed}, charge{"order-1", true, false, 1}},
		{"each comes twice", `"order-1"`, []string{confirmed, confirmed, received, received}, charge{"order-1", true, false, 1}},
		{"Pix is never confirmed, and comes twice", `"order-1"`, []string{received, received}, charge{"order-1", true, false, 1}},
		{"it is refunded", `"order-1"`, []string{received, refunded}, charge{"order-1", true, true, 1}},
		{"a card that is returned before its money came", `"order-1"`, []string{confirmed, refunded}, charge{"order-1", true, true, 1}},
		{"the refund comes first", `"order-1"`, []string{refunded, received}, charge{"order-1", true, true, 1}},
		{"a redelivery of yesterday comes after the refund", `"order-1"`, []string{confirmed, received, refunded, confirmed, received}, charge{"order-1", true, true, 1}},
		{"a Checkout's names no order, and is money all the same", `null`, []string{confirmed, received}, charge{"none", true, false, 1}},
	} {
		id := fmt.Sprintf("pay_%d_a1B2c3D4e5F6g7", i+1)
		for _, name := range c.events {
			s.send(id, c.reference, name)
			s.await(id, "done") // so that the next one is handled after it, whatever its time
		}
		s.is(c.why, id, c.want)
	}
	var paid string
	const sum = `select sum(value)::text from charges where order_id = 'order-1' and paid_at is not null and returned_at is null`
	if err := s.pool.QueryRow(t.Context(), sum).Scan(&paid); err != nil || paid != "119.60" {
		t.Errorf("the charges of the order add up to %s, %v; want 119.60 of four that are paid and not returned", paid, err)
	}
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
	addr, log = testkit.FreeAddress(t), new(said)
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
