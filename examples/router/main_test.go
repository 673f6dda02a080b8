//go:build long

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestURLDecidesTheAccount(t *testing.T) {
	t.Parallel()
	database := open(t, idemtest.URL(t))
	url := start(t, database.Config().ConnString())
	for _, delivery := range []struct {
		path, token, id, reason string
		status                  int
	}{
		{"shop", "token of the shop", "evt_1", "its own", http.StatusOK},
		{"shop", "token of the shop", "evt_1", "the same again", http.StatusOK},
		{"shop", "token of the shop", "evt_2", "received again, after a chargeback that was won", http.StatusOK},
		{"school", "token of the school", "evt_1", "the same id in another account is another event", http.StatusOK},
		{"school", "token of the shop", "evt_3", "the token of another account", http.StatusUnauthorized},
		{"nobody", "", "evt_4", "an account that nobody knows", http.StatusUnauthorized},
		{"", "token of the first", "evt_1", "the account that was there first has no scope", http.StatusOK},
		{"", "token of the shop", "evt_5", "the token of another account at its path", http.StatusUnauthorized},
	} {
		if got := deliver(t, strings.TrimSuffix(url+"/webhooks/asaas/"+delivery.path, "/"), delivery.token, delivery.id); got != delivery.status {
			t.Errorf("%s: %d", delivery.reason, got)
		}
	}
	for left := 1; left > 0; {
		if err := database.QueryRow(t.Context(), `select count(*) from idem_events where state <> 'done'`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%d events are not done", left)
		case <-time.After(10 * time.Millisecond):
		}
	}
	rows, err := database.Query(t.Context(), `select account || ' ' || id || ' ' || paid from orders order by account`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{" 7 29.90", "school 7 29.90", "shop 7 29.90"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMissingDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), ""); err == nil || err.Error() != "set DATABASE_URL" {
		t.Errorf("got %v", err)
	}
}

// open returns a connection to a database with the application's table.
func open(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	tables, err := os.ReadFile("orders.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), string(tables)+`; insert into orders (account, id) values ('', '7'), ('shop', '7'), ('school', '7')`); err != nil {
		t.Fatal(err)
	}
	return conn
}

// start builds and starts the program, and returns where it serves.
func start(t *testing.T, database string) (url string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "router")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+database, "ADDR=127.0.0.1:0",
		"ASAAS_WEBHOOK_TOKEN=token of the first", "ASAAS_TOKEN_shop=token of the shop", "ASAAS_TOKEN_school=token of the school")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if _, addr, listens := strings.Cut(lines.Text(), "receiving webhooks address="); listens {
			go io.Copy(os.Stderr, stderr)
			return "http://" + addr
		}
	}
	t.Fatal("the program has ended before it listened")
	return ""
}

// deliver sends an event about a payment of the account, and returns the answer's status.
func deliver(t *testing.T, url, token, id string) int {
	t.Helper()
	today := time.Now().In(asaas.Brasilia()).Format(time.DateOnly)
	body := `{"id":"` + id + `","event":"PAYMENT_RECEIVED","dateCreated":"` + today + ` 12:00:00","payment":{"id":"pay_1_` + path.Base(url) + `","dateCreated":"` + today + `",
		"value":29.90,"status":"RECEIVED","externalReference":"7"}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(asaas.TokenHeader, token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}
