package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/port"
	"github.com/paghooks/paghooks/internal/testkit"
)

// platform is the application in this process, with a fake Asaas that has two sellers.
type platform struct {
	pool     *pgxpool.Pool
	fake     *asaastest.Fake
	ana, bia asaastest.Account
	inbox    *idem.Inbox
	url      string
	accounts list
}

func start(t *testing.T) *platform {
	t.Helper()
	p := &platform{pool: idemtest.Pool(t), fake: asaastest.New()}
	t.Cleanup(p.fake.Close)
	p.ana, p.bia = p.fake.AddAccount("ana"), p.fake.AddAccount("bia")
	p.accounts = list{{"platform", p.fake.APIKey, token("platform")}, {"ana", p.ana.APIKey, token("ana")}, {"bia", p.bia.APIKey, token("bia")}}
	err := errors.Join(idem.Migrate(t.Context(), p.pool), charges.Migrate(t.Context(), p.pool))
	for _, a := range p.accounts {
		err = errors.Join(err, charges.Filled(t.Context(), p.pool, a.scope, time.Time{}))
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, p.pool, tables)
	testkit.Exec(t, p.pool, `insert into accounts values ('platform', $1, true), ('ana', $2, false), ('bia', $3, false)`, p.fake.WalletID, p.ana.WalletID, p.bia.WalletID)
	testkit.Exec(t, p.pool, `insert into orders (scope, id) values ('platform', 'order-1'), ('ana', 'order-1'), ('bia', 'order-1')`)
	p.inbox = idem.NewInbox(p.pool, newEvents(p.accounts))
	p.inbox.Logger = nil
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas/{account}", p.inbox)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url = server.URL + "/webhooks/asaas/"
	return p
}

func token(account string) string { return "the-webhook-token-of-the-account-" + account }

// handle handles an event of an account in a transaction of its own.
func (p *platform) handle(t *testing.T, scope string, bodies ...[]byte) {
	t.Helper()
	for _, body := range bodies {
		e := asaas.Identify(body)
		e.Scope = scope
		err := pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error { return idem.Dispatch(t.Context(), tx, newEvents(p.accounts), e) })
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (p *platform) part(t *testing.T, charge string) string {
	t.Helper()
	return testkit.QueryOne[string](t, p.pool, `select concat_ws(' ', round(expected, 2), round(settled, 2), round(blocked, 2)) from platform_parts where charge = $1`, charge)
}

func TestAWebhookOfEachAccountDeliversUnderItsScope(t *testing.T) {
	t.Parallel()
	p := start(t)
	events := newEvents(p.accounts)
	for scope, client := range asaas.Clients(asaas.Sandbox, func(yield func(string, string) bool) {
		for _, a := range p.accounts {
			if !yield(a.scope, a.key) {
				return
			}
		}
	}) {
		client.Transport = p.fake.Transport()
		want := settings(scope)
		want.URL, want.Token, want.Email = p.url+scope, token(scope), "ops@shop.example"
		plan, err := webhook.NewPlan(t.Context(), client, want, events)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Apply(t.Context()); err != nil { // its token is tried at its URL before
			t.Fatal(err)
		}
		made, err := client.CreatePayment(t.Context(), asaas.PaymentCreate{
			Customer: "cus_1", BillingType: asaas.BillingTypePix, Value: value.Of(asaas.Cents(10000)), DueDate: "2026-08-20", ExternalReference: value.Of("order-1"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if scope != "bia" {
			p.fake.Emit(p.fake.Charge(made.ID).Received())
		}
	}
	p.fake.Settle()
	if err := p.inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, _ := p.pool.Query(t.Context(), `select scope || ' ' || paid from orders order by scope`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff([]string{"ana 100.00", "bia 0.00", "platform 100.00"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// The token is one witness, and the account in the body is another.
func TestAContradictionOfTokenURLAndBodyIsSeen(t *testing.T) {
	t.Parallel()
	p := start(t)
	pay := func(of asaastest.Account, url, token string) (status int, state, why string) {
		t.Helper()
		c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
		c.Account, c.Payment.ExternalReference = of.ID, value.Of("order-1")
		body := c.Created()
		r := asaastest.Request(p.url+url, token, body)
		r.RequestURI = ""
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if err := p.inbox.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		row := p.pool.QueryRow(t.Context(), `select state, coalesce(last_error, '') from idem_events where event like '%/' || $1`, asaas.Identify(body).ID)
		if err := row.Scan(&state, &why); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
		return answer.StatusCode, state, why
	}
	for _, tt := range []struct {
		reason, url, token string
		of                 asaastest.Account
		status             int
		state, why         string
	}{
		{"all agree", "ana", token("ana"), p.ana, 200, "done", ""},
		{"the token of another account", "ana", token("bia"), p.bia, 401, "", ""},
		{"an account that nobody knows", "caio", token("ana"), p.ana, 401, "", ""},
		{"the webhook of bia has ana's URL and token", "ana", token("ana"), p.bia, 200, "parked", "is of Asaas's account " + p.bia.ID},
		{"the next one of ana", "ana", token("ana"), p.ana, 200, "done", ""},
	} {
		status, state, why := pay(tt.of, tt.url, tt.token)
		if status != tt.status || state != tt.state || !strings.Contains(why, tt.why) {
			t.Errorf("%s: %d, %s, %s; want %d, %s", tt.reason, status, state, why, tt.status, tt.state)
		}
	}
}

// story is a charge with a split, and the platform's part of it after each event: expected, settled, blocked.
type story []struct {
	what string
	body []byte
	want string
}

func TestThePlatformsPartOfASellersCharge(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	c.Account, c.Payment.ExternalReference = p.ana.ID, value.Of("order-1")
	id := c.AddSplit(p.fake.WalletID, asaas.Cents(1500))
	p.tell(t, "ana", c, story{
		{"it is made", c.Created(), "0.00 0.00 0.00"},
		{"it is paid: the split is to come", c.Received(), "15.00 0.00 0.00"},
		{"the split exceeds what is left, say after a change of the charge", c.SplitBlocked(), "15.00 0.00 15.00"},
		{"it is settled", c.SplitDone(id), "15.00 15.00 0.00"},
		{"it is refused after that", c.SplitCancelled(id, asaas.SplitCancellationReasonPaymentSplitValidationFailed), "0.00 0.00 0.00"},
	})
}

func TestThePlatformsPartOfItsOwnCharge(t *testing.T) {
	t.Parallel()
	p := start(t)
	c := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000)) // 98.01 after the fee
	c.Payment.ExternalReference = value.Of("order-1")
	ana, bia := c.AddSplit(p.ana.WalletID, asaas.Cents(5000)), c.AddSplit(p.bia.WalletID, asaas.Cents(3000))
	p.tell(t, "platform", c, story{
		{"it is made", c.Created(), "0.00 0.00 0.00"},
		{"it is paid, and its money comes in a month", c.Confirmed(), "18.01 0.00 0.00"},
		{"its money is here", c.Received(), "18.01 18.01 0.00"},
		{"ana has her part", c.SplitDone(ana), "18.01 18.01 0.00"},
		{"bia cannot receive: it stays here", c.SplitCancelled(bia, asaas.SplitCancellationReasonWalletUnableToReceive), "48.01 48.01 0.00"},
		{"a part is given back, by the platform", c.PartiallyRefunded(asaas.Cents(1000)), "38.01 38.01 0.00"},
		{"ana gives half of hers back, too", givenBack(c, ana), "53.01 53.01 0.00"},
		{"a chargeback", c.ChargebackRequested(), "0.00 0.00 0.00"},
	})
}

// givenBack has a refund of R$ 10.00, of which the split pays all, and more of the split besides.
func givenBack(c *asaastest.Charge, id string) []byte {
	c.PartiallyRefunded(asaas.Cents(1000))
	refunds := c.Payment.Refunds.Or(nil)
	refunds[len(refunds)-1].RefundedSplits = value.Of([]asaas.RefundedSplit{{ID: value.Of(id), Value: value.Of(asaas.Cents(2500)), Done: value.Of(true)}})
	c.Payment.Refunds = value.Of(refunds)
	return c.SplitDone(id) // the next event has it
}

// tell handles the events of a story in their order, and then in others: the end is the same.
func (p *platform) tell(t *testing.T, scope string, c *asaastest.Charge, s story) {
	t.Helper()
	for _, step := range s {
		p.handle(t, scope, step.body)
		if got := p.part(t, c.Payment.ID); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
	want := s[len(s)-1].want
	testkit.Random(t, testkit.Size(10, 200), func(r *rand.Rand) {
		testkit.Exec(t, p.pool, `delete from asaas_charges`)
		testkit.Exec(t, p.pool, `delete from charge_splits`)
		r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		for _, step := range s {
			p.handle(t, scope, step.body)
		}
		if got := p.part(t, c.Payment.ID); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestTheListNamesVariablesThatAreSet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accounts.txt")
	if err := os.WriteFile(file, []byte("# all\nplatform KEY_0 TOKEN_0\n\nana KEY_1 TOKEN_1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KEY_0", "$aact_hmlg_0")
	t.Setenv("TOKEN_0", "token-0")
	if _, err := read(file); err == nil || !strings.Contains(err.Error(), "the account ana") {
		t.Error(err)
	}
	t.Setenv("TOKEN_1", "token-1")
	accounts, err := read(file)
	if diff := cmp.Diff(fmt.Sprint(list{{"platform", "$aact_hmlg_0", "token-0"}, {"ana", "", "token-1"}}), fmt.Sprint(accounts)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// The program as it runs: it migrates, serves, watches, and ends.
func TestTheProgramWatchesEachAccount(t *testing.T) {
	fake := asaastest.NewServer()
	defer fake.Close()
	ana := fake.AddAccount("ana")
	addr := port.Address(t)
	t.Setenv("ADDR", addr)
	t.Setenv("ASAAS_BASE_URL", fake.URL+"/v3")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, idemtest.URL(t), list{{"platform", fake.APIKey, token("platform")}, {"ana", ana.APIKey, token("ana")}})
	}()
	for {
		answer, err := http.Get("http://" + addr + "/health/webhooks")
		if err == nil {
			text := new(strings.Builder)
			_, _ = fmt.Fprint(text, answer.Status)
			body := make([]byte, 1<<16)
			n, _ := answer.Body.Read(body)
			answer.Body.Close()
			said := string(body[:n])
			if strings.Contains(said, "of 2 accounts 2: platform: the account has no webhook") && strings.Contains(said, "ana: the account has no webhook") &&
				strings.Count(said, "the last run came to its end at") == 2 { // of each account's charges
				break
			}
		}
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond): // its first round is not over
		case <-t.Context().Done():
			t.Fatal("health does not name both accounts")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAMissingDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), "", nil); err == nil || err.Error() != "set DATABASE_URL" {
		t.Errorf("got %v", err)
	}
}
