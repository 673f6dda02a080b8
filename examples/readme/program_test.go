package readme

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/freeport"
)

const token = "right"

// event is an event of a charge.
func event(name, charge string) string {
	return fmt.Sprintf(`{"id":"evt_%[1]s&%[2]s","event":"%[1]s","dateCreated":"2026-11-20 10:00:00",
		"payment":{"object":"payment","id":"%[2]s","value":29.9,"status":"%[3]s"}}`, name, charge, strings.TrimPrefix(name, "PAYMENT_"))
}

func TestTheProgramMarksAnOrderAsPaidOnce(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const (
		card   = "pay_1_a1B2c3D4e5F6g7"
		late   = "pay_2_b2C3d4E5f6G7h8"
		pix    = "pay_3_c3D4e5F6g7H8i9"
		unpaid = "pay_4_d4E5f6G7h8I9j0"
	)
	if _, err := pool.Exec(t.Context(), `create table orders (charge_id text, paid_at timestamptz, paid int default 0);
		create function count_paid() returns trigger language plpgsql as $$ begin new.paid = old.paid + 1; return new; end $$;
		create trigger count_paid before update on orders for each row execute function count_paid()`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `insert into orders (charge_id) select unnest($1::text[])`, []string{card, late, pix, unpaid}); err != nil {
		t.Fatal(err)
	}
	deliver, _ := start(t, build(t), url, token)
	if got := deliver("wrong", event("PAYMENT_RECEIVED", unpaid)); got != http.StatusUnauthorized {
		t.Errorf("a delivery with the wrong token was answered %d, want 401", got)
	}
	for _, c := range []struct {
		charge string
		events []string
		why    string
	}{
		{card, []string{"PAYMENT_CONFIRMED", "PAYMENT_CONFIRMED", "PAYMENT_RECEIVED", "PAYMENT_RECEIVED"}, "a card: the money comes a month later"},
		{late, []string{"PAYMENT_RECEIVED", "PAYMENT_CONFIRMED"}, "they come out of order"},
		{pix, []string{"PAYMENT_RECEIVED", "PAYMENT_RECEIVED"}, "Pix is never confirmed"},
	} {
		for i, name := range c.events {
			if got := deliver(token, event(name, c.charge)); got != http.StatusOK {
				t.Errorf("%s: delivery %d, %s, was answered %d, want 200", c.why, i+1, name, got)
			}
			var paid int
			query := `select paid from orders where charge_id = $1 and (paid = 0) = (paid_at is null)`
			if err := pool.QueryRow(t.Context(), query, c.charge).Scan(&paid); err != nil || paid != 1 {
				t.Errorf("%s: after delivery %d, %s, it was paid %d times, %v", c.why, i+1, name, paid, err)
			}
		}
	}
	var paid int
	if err := pool.QueryRow(t.Context(), `select paid from orders where charge_id = $1`, unpaid).Scan(&paid); err != nil || paid != 0 {
		t.Errorf("the order that nobody paid was paid %d times, %v", paid, err)
	}
}

func TestTheProgramWithoutATokenAsksForRedelivery(t *testing.T) {
	t.Parallel()
	deliver, _ := start(t, build(t), idemtest.URL(t), "")
	for _, token := range []string{"", "any"} {
		if got := deliver(token, event("PAYMENT_RECEIVED", "pay_1_a1B2c3D4e5F6g7")); got != http.StatusServiceUnavailable {
			t.Errorf("a delivery with the token %q was answered %d, want 503", token, got)
		}
	}
}

func TestTheProgramTellsThatDeliveriesFail(t *testing.T) {
	t.Parallel()
	deliver, addr := start(t, build(t), idemtest.URL(t), "right") // its database has no table of orders
	if status, says := health(t, addr); status != http.StatusOK {
		t.Errorf("at the start its health is %d: %s", status, says)
	}
	for range 5 {
		deliver("right", event("PAYMENT_RECEIVED", "pay_1_a1B2c3D4e5F6g7"))
	}
	late := time.After(30 * time.Second)
	for { // it looks once a second
		status, says := health(t, addr)
		if status == http.StatusServiceUnavailable && strings.Contains(says, "5 deliveries have failed in a row") {
			return
		}
		select {
		case <-late:
			t.Fatalf("its health is %d: %s", status, says)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func health(t *testing.T, addr string) (status int, says string) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/healthz")
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

// build builds the README's program, for an address of the tests' own.
func build(t *testing.T) (binary string) {
	t.Helper()
	code := strings.Replace(program(t).text, `":8080"`, `os.Getenv("ADDR")`, 1)
	binary = filepath.Join(t.TempDir(), "program")
	run(t, "build", "-o", binary, write(t, code))
	return binary
}

// start runs the program until the test ends, and returns how to deliver to it,
// and where it listens.
func start(t *testing.T, binary, database, token string) (deliver func(token, body string) (status int), addr string) {
	t.Helper()
	addr = freeAddr(t)
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Stderr = &said
	cmd.Env = append(os.Environ(), "ADDR="+addr, "DATABASE_URL="+database, "ASAAS_WEBHOOK_TOKEN="+token)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the end of the test's context has killed it
		if t.Failed() {
			t.Logf("the program said:\n%s", &said)
		}
	})
	await(t, addr)
	return func(token, body string) int { return post(t, "http://"+addr+"/webhooks/asaas", token, body) }, addr
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
	late := time.After(30 * time.Second)
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
