package readme

import (
	"bytes"
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
)

const payment = `{"id":"evt_1&2","event":"PAYMENT_RECEIVED","dateCreated":"2026-11-20 10:00:00",
	"payment":{"object":"payment","id":"pay_1","value":29.9,"status":"RECEIVED"}}`

func TestTheProgramMarksAnOrderAsPaidOnce(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), `create table orders (charge_id text, paid_at timestamptz, paid int default 0);
		insert into orders (charge_id) values ('pay_1'), ('pay_2');
		create function count_paid() returns trigger language plpgsql as $$ begin new.paid = old.paid + 1; return new; end $$;
		create trigger count_paid before update on orders for each row execute function count_paid()`); err != nil {
		t.Fatal(err)
	}
	deliver := start(t, build(t), url, "right")
	for i, c := range []struct {
		token string
		want  int
	}{{"wrong", http.StatusUnauthorized}, {"right", http.StatusOK}, {"right", http.StatusOK}} {
		if got := deliver(c.token); got != c.want {
			t.Errorf("delivery %d with the %s token was answered %d, want %d", i+1, c.token, got, c.want)
		}
	}
	var orders string
	const query = `select string_agg(charge_id || ' ' || paid || ' ' || (paid_at is not null), ', ' order by charge_id) from orders`
	if err := pool.QueryRow(t.Context(), query).Scan(&orders); err != nil || orders != "pay_1 1 true, pay_2 0 false" {
		t.Errorf("orders: %s, %v", orders, err)
	}
}

func TestTheProgramWithoutATokenAsksForRedelivery(t *testing.T) {
	t.Parallel()
	deliver := start(t, build(t), idemtest.URL(t), "")
	for _, token := range []string{"", "any"} {
		if got := deliver(token); got != http.StatusServiceUnavailable {
			t.Errorf("a delivery with the token %q was answered %d, want 503", token, got)
		}
	}
}

// build builds the README's program, for an address of the tests' own.
func build(t *testing.T) (binary string) {
	t.Helper()
	code := strings.Replace(program(t).text, `":8080"`, `os.Getenv("ADDR")`, 1)
	binary = filepath.Join(t.TempDir(), "program")
	run(t, "build", "-o", binary, write(t, code))
	return binary
}

// start runs the program until the test ends, and returns how to deliver the
// payment to it.
func start(t *testing.T, binary, database, token string) (deliver func(token string) (status int)) {
	t.Helper()
	addr := freeAddr(t)
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
	return func(token string) int { return post(t, "http://"+addr+"/webhooks/asaas", token) }
}

func post(t *testing.T, url, token string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(payment))
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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
