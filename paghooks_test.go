package paghooks_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks"
	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const (
	token  = "a-token-of-a-program-in-a-test-0123"
	secret = "a-secret-of-zelta-pay-in-a-test"
)

// TestMain is the program itself where a test has started it.
func TestMain(m *testing.M) {
	if os.Getenv("PAGHOOKS_TEST_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	events := asaas.NewDispatcher(token)
	events.OnPayment(charges.Orders(paid))
	links := zeltapay.NewDispatcher(secret)
	links.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into links (id) values ($1)`, e.LinkID())
		return err
	})
	daily := &charges.Daily{Orders: paid}
	if api := os.Getenv("PAGHOOKS_TEST_API"); api != "" {
		client, err := asaas.NewClient(asaas.Sandbox, os.Getenv("PAGHOOKS_TEST_KEY"))
		if err != nil {
			log.Fatal(err)
		}
		client.BaseURL, daily.Client = api, client
	}
	told := &health.Notifier{Notify: func(context.Context, check.Result) error { return nil }}
	if err := paghooks.Run(os.Getenv("PAGHOOKS_TEST_PROGRAM"), events, links, daily, told); err != nil {
		log.Fatal(err)
	}
}

func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
	set, err := tx.Exec(ctx, `update orders set paid = $1 where id = $2`, o.Paid, o.Reference)
	return set.RowsAffected(), err
}

// program is a process that runs paghooks.Run.
type program struct {
	*testing.T
	cmd     *exec.Cmd
	url     string
	stopped chan error
}

// start starts the program, and waits until it serves.
func start(t *testing.T, environment ...string) *program {
	t.Helper()
	p := &program{T: t, cmd: command(t, append(environment, "PAGHOOKS_TEST_PROGRAM=127.0.0.1:0")...), stopped: make(chan error, 1)}
	said, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	address := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(said); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if found := regexp.MustCompile(`receiving webhooks.*address=(\S+)`).FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
		if err := p.cmd.Wait(); err != nil {
			p.stopped <- fmt.Errorf("%w\n%s", err, &all)
		}
		close(p.stopped)
	}()
	select {
	case err := <-p.stopped:
		t.Fatalf("it has ended: %v", err)
	case a := <-address:
		p.url = "http://" + a
	}
	return p
}

func command(t *testing.T, environment ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "DATABASE_URL=", "ASAAS_API_KEY=", "PAGHOOKS_TEST_API=")
	cmd.Env = append(cmd.Env, environment...)
	return cmd
}

// post delivers, and returns the status.
func (p *program) post(r *http.Request) int {
	p.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// health returns the status of health, and what it says of a check.
func (p *program) health(name string) (status int, says string) {
	p.Helper()
	answer, err := http.Get(p.url + "/health/webhooks")
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	var report struct {
		Checks []struct{ Check, Says string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&report); err != nil {
		p.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Check == name {
			says = c.Says
		}
	}
	return answer.StatusCode, says
}

// database is a fresh one with the program's own tables.
func database(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	pool := testkit.Open(t)
	testkit.Exec(t, pool, `create table orders (id text primary key, paid numeric not null default 0); create table links (id text)`)
	return pool, pool.Config().ConnString()
}

// until waits until a query says true.
func until(t *testing.T, pool *pgxpool.Pool, query string) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !testkit.QueryOne[bool](t, pool, query); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			stored := testkit.QueryOne[string](t, pool,
				`select coalesce(string_agg(concat_ws(' ', type, state, last_error), '; '), '') from idem_event_log`)
			t.Fatalf("after a minute it is not so: %s: %s", query, stored)
		}
	}
}

func TestRunReceivesStoresProcessesAndStops(t *testing.T) {
	t.Parallel()
	pool, url := database(t)
	p := start(t, "DATABASE_URL="+url)

	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(14990))
	charge.Payment.ExternalReference = value.Of("A-1")
	created, received := charge.Created(), charge.Received()
	if err := charges.Filled(t.Context(), pool, "", time.Time{}); err != nil { // it is a charge of another day
		t.Fatal(err)
	}
	if status := p.post(asaastest.Request(p.url+"/webhooks/asaas", token, created)); status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
	for range 3 { // duplicates, before and after the event is done
		if status := p.post(asaastest.Request(p.url+"/webhooks/asaas", token, received)); status != http.StatusOK {
			t.Errorf("answered %d", status)
		}
	}
	if status := p.post(asaastest.Request(p.url+"/webhooks/asaas", "a guess", received)); status != http.StatusUnauthorized {
		t.Errorf("a wrong token is answered %d", status)
	}
	link := zeltapaytest.Flat.Event(zeltapay.EventPaymentSuccess, zeltapaytest.Set("paymentLinkId", "pl_1"))
	if status := p.post(zeltapaytest.Request(p.url+"/webhooks/zeltapay", secret, link)); status != http.StatusOK {
		t.Errorf("Zelta Pay is answered %d", status)
	}
	until(t, pool, `select exists (select from links where id = 'pl_1')`)

	until(t, pool, `select exists (select from idem_event_log where source = 'asaas' and failures is not null)`) // its order is not there
	testkit.Exec(t, pool, `insert into orders (id) values ('A-1')`)
	until(t, pool, `select paid = 149.90 from orders`)

	if status, says := p.health("reconcile"); status != http.StatusOK || !strings.Contains(says, "no charges are read, and missed events are not noticed") {
		t.Errorf("health: %d, %q", status, says)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-p.stopped; err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if left := testkit.QueryOne[int](t, pool, `select count(*) from idem_workers`); left != 0 {
		t.Errorf("it leaves %d workers", left)
	}
}

func TestRunHasANotifierTellWhatHealthSays(t *testing.T) {
	t.Parallel()
	pool, url := database(t)
	testkit.Exec(t, pool, `
insert into idem_events (event, type, key, state) values ('asaas//evt_1', 'PAYMENT_RECEIVED', 'pay_1', 'parked');
insert into idem_payloads (event, source, lane, received_at, body) values ('asaas//evt_1', 'asaas', 'asaas//pay_1', now(), '{}');
insert into idem_notices (source, name, since_at, seen_at) values ('asaas', 'parked', now() - interval '1 minute', now())`)
	start(t, "DATABASE_URL="+url)
	until(t, pool, `select exists (select from idem_notices where name = 'parked' and told_at is not null)`)
}

func TestRunReadsWhatNoEventBrought(t *testing.T) {
	t.Parallel()
	pool, url := database(t)
	testkit.Exec(t, pool, `insert into orders (id) values ('A-2')`)
	fake := asaastest.NewServer()
	t.Cleanup(fake.Close)
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(5990))
	charge.Now = time.Now().In(asaas.Brasilia())
	charge.Payment.DateCreated = asaas.Date(charge.Now.Format(time.DateOnly))
	charge.Payment.ExternalReference = value.Of("A-2")
	fake.Emit(charge.Created(), charge.Received())
	start(t, "DATABASE_URL="+url, "PAGHOOKS_TEST_API="+fake.URL+"/v3", "PAGHOOKS_TEST_KEY="+fake.APIKey)
	until(t, pool, `select paid = 59.90 from orders`)
}

func TestRunSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	pool, url := database(t)
	name := testkit.QueryOne[string](t, pool, `select current_schema()`) // of a role that may use the schema only
	testkit.Exec(t, pool, `create role `+name+` login password 'a password'; grant usage on schema `+name+` to `+name)
	defer func() { _, _ = pool.Exec(context.Background(), `drop owned by `+name+`; drop role `+name) }()
	poor, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	poor.User = neturl.UserPassword(name, "a password")
	taken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(taken.Close)
	for _, c := range []struct {
		reason, says string
		environment  []string
	}{
		{"no database", "paghooks: DATABASE_URL is not set", nil},
		{"an address that is none", "paghooks: DATABASE_URL: ", []string{"DATABASE_URL=postgres://%zz"}},
		{"a database that does not answer", "paghooks: making the tables: ", []string{"DATABASE_URL=postgres://nobody@127.0.0.1:1/none"}},
		{"a role without rights", "paghooks: the role " + name + " may not make or change tables", []string{"DATABASE_URL=" + poor.String()}},
		{"a key that is none", "paghooks: ASAAS_API_KEY: asaas: the API key does not start with $aact_prod_", []string{"DATABASE_URL=" + url, "ASAAS_API_KEY=secret"}},
		{"an address in use", "address already in use", []string{"DATABASE_URL=" + url, "PAGHOOKS_TEST_PROGRAM=" + strings.TrimPrefix(taken.URL, "http://")}},
	} {
		cmd := command(t, append([]string{"PAGHOOKS_TEST_PROGRAM=127.0.0.1:0"}, c.environment...)...)
		said, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(said), c.says) || strings.Contains(string(said), "secret") {
			t.Errorf("%s: %v, %swant %q", c.reason, err, said, c.says)
		}
	}
}

func TestRunRefusesWhatItCannotRun(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/none")
	for says, parts := range map[string][]any{
		"paghooks: Run got a func(":                       {paid},
		"paghooks: Run got two sources of the name asaas": {asaas.NewDispatcher(token), asaas.NewDispatcher(token)},
	} {
		if err := paghooks.Run("127.0.0.1:0", parts...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Run = %v, want %s", err, says)
		}
	}
}
