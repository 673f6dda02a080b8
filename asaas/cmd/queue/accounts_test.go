package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

// platform is an account with the sub-accounts seller-1 to seller-3, a file that lists them, and the application that
// they deliver to. The key of seller-2 is broken.
type platform struct {
	*account
	sellers []asaastest.Account
	file    string
	url     string // with {account}
}

const sellerToken = "the-token-of-the-webhook-of-seller-"

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{account: newAccount(t), file: filepath.Join(t.TempDir(), "accounts")}
	var lines strings.Builder
	lines.WriteString("# the platform itself\n- ASAAS_API_KEY ASAAS_WEBHOOK_TOKEN\n\n")
	accounts := []idem.Credentials{}
	for n := 1; n <= 3; n++ {
		s := p.fake.AddAccount(fmt.Sprintf("seller-%d", n))
		p.sellers = append(p.sellers, s)
		key, token := fmt.Sprintf("KEY_%d", n), fmt.Sprintf("TOKEN_%d", n)
		p.env[key], p.env[token] = s.APIKey, sellerToken+s.Name
		lines.WriteString(s.Name + " " + key + " " + token + "\n")
		accounts = append(accounts, idem.Credentials{Scope: s.Name, Secrets: []string{sellerToken + s.Name}})
	}
	p.env["KEY_2"] = "$aact_hmlg_of_an_account_that_is_closed"
	if err := os.WriteFile(p.file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := charges.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(token)
	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) {
		for _, a := range accounts {
			if a.Scope == r.PathValue("account") {
				return []idem.Credentials{a}, nil
			}
		}
		return nil, nil
	}
	events.OnPayment(charges.Handler(nil))
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = nil
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas/{account}", inbox)
	mux.Handle("POST /webhooks/asaas", inbox)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url, p.database = server.URL+"/webhooks/asaas/{account}", pool.Config().ConnString()
	return p
}

func (p *platform) list(t *testing.T, args ...string) (status int, out, complaints string) {
	t.Helper()
	return p.queue(t, append([]string{args[0], "-accounts", p.file}, args[1:]...)...)
}

// accountsIn returns the values of the member account of lines of JSON.
func accountsIn(t *testing.T, text string) (accounts []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var said struct{ Account *string }
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if said.Account != nil {
			accounts = append(accounts, *said.Account)
		}
	}
	return accounts
}

func TestOneListMakesAndComparesTheWebhooksOfAllAccounts(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	types := filepath.Join(t.TempDir(), "types")
	if err := os.WriteFile(types, []byte("PAYMENT_CREATED PAYMENT_RECEIVED"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"-name", "shop", "-url", p.url, "-email", "ops@shop.example", "-handled", types}
	status, out, complaints := p.list(t, append([]string{"apply", "-yes"}, flags...)...)
	if status != 1 || strings.Count(out, "the webhook was created: 2 event types") != 3 {
		t.Errorf("apply: %d, %s", status, out)
	}
	if !strings.Contains(complaints, "asaas-queue: seller-2: ") || strings.Count(complaints, "\n") != 1 || !strings.Contains(complaints, "Asaas does not take the API key") {
		t.Errorf("apply complains %q", complaints)
	}
	heads := []string{}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "== "); ok {
			heads = append(heads, strings.TrimSpace(name))
		}
	}
	if diff := cmp.Diff([]string{"-", "seller-1", "seller-2", "seller-3"}, heads); diff != "" {
		t.Error(diff)
	}
	p.env["KEY_2"] = p.sellers[1].APIKey
	if status, _, complaints := p.list(t, append([]string{"apply", "-yes", "-account", "seller-2"}, flags...)...); status != 0 {
		t.Errorf("apply for one: %d, %s", status, complaints)
	}
	status, out, complaints = p.list(t, append([]string{"plan", "-json"}, flags...)...)
	if diff := cmp.Diff([]string{"", "seller-1", "seller-2", "seller-3"}, accountsIn(t, out)); diff != "" || status != 0 {
		t.Errorf("plan: %d, %s, %s", status, diff, complaints)
	}

	// What was made delivers, each with its own token and under its own scope.
	for _, s := range p.sellers {
		_, err := p.fake.ClientOf(s.APIKey).CreatePayment(t.Context(), asaas.PaymentCreate{
			Customer: "cus_1", BillingType: asaas.BillingTypePix, Value: value.Of(asaas.Cents(100)), DueDate: "2099-01-01",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.fake.Settle()
	conn, err := pgx.Connect(t.Context(), p.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), `select split_part(event, '/', 2) from idem_events order by 1`)
	scopes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff([]string{"seller-1", "seller-2", "seller-3"}, scopes); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestOneListShowsAndRecoversTheQueuesOfAllAccounts(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.env["DATABASE_URL"] = p.database
	p.wait = func(ctx context.Context, d time.Duration) error { p.fake.Advance(d); return ctx.Err() }
	fails := true
	receiver := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(idem.DryRunHeader) != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"received":false,"dry_run":"done"}`))
		} else if fails {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	ids := map[string]string{}
	for _, s := range p.sellers {
		ids[s.Name] = p.fake.AddWebhook(asaastest.Webhook{Account: s.ID, Name: s.Name, Token: sellerToken + s.Name, URL: server.URL})
	}
	for _, n := range []int{0, 2} { // seller-1 and seller-3
		p.fake.Emit(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("account.id", p.sellers[n].ID)))
	}
	p.fake.Advance(24 * time.Hour)
	status, out, complaints := p.list(t, "status")
	if status != 1 || !strings.Contains(complaints, "seller-2: ") || strings.Count(out, "stopped") < 2 ||
		!strings.Contains(out, "asaas-queue recover -sandbox -accounts "+p.file+" -account seller-3 "+ids["seller-3"]) {
		t.Errorf("status: %d, %s, %s", status, out, complaints)
	}
	if n := strings.Count(out, "reconcile finds what was never delivered"); n != 1 {
		t.Errorf("what is owed is printed %d times:\n%s", n, out)
	}

	fails = false
	// One by its id, whichever account has it.
	if status, out, complaints := p.list(t, "recover", "-yes", ids["seller-1"]); status != 0 || !strings.Contains(out, "== seller-1") || strings.Contains(out, "== seller-3") {
		t.Errorf("recover: %d, %s, %s", status, out, complaints)
	}
	if got := p.fake.Webhook(ids["seller-3"]); !got.Interrupted {
		t.Error("the queue of seller-3 was started")
	}
	// All that are held up.
	status, out, complaints = p.list(t, "recover", "-yes", "all")
	if status != 1 || !strings.Contains(complaints, "seller-2: ") || strings.Count(out, "no queue is held up") != 2 {
		t.Errorf("recover all: %d, %s, %s", status, out, complaints)
	}
	for name, id := range ids {
		if got := p.fake.Webhook(id); got.Interrupted || got.Pending != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if status, _, complaints := p.list(t, "recover", "-yes", "nobody's"); status != 1 || !strings.Contains(complaints, "seller-2") {
		t.Errorf("recover of an id that may be seller-2's: %d, %s", status, complaints)
	}
	p.env["KEY_2"] = p.sellers[1].APIKey
	if status, _, complaints := p.list(t, "recover", "-yes", "nobody's"); status != 3 || !strings.Contains(complaints, "no account of the list has the webhook") {
		t.Errorf("recover of nobody's id: %d, %s", status, complaints)
	}
}

func TestOneListReconcilesEachAccountUnderItsScope(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.env["DATABASE_URL"] = p.database
	now := time.Now()
	p.fake.Advance(now.Sub(p.fake.Now())) // the clocks agree
	for _, s := range p.sellers {
		_, err := p.fake.ClientOf(s.APIKey).CreatePayment(t.Context(), asaas.PaymentCreate{
			Customer: "cus_1", BillingType: asaas.BillingTypePix, Value: value.Of(asaas.Cents(100)), DueDate: "2099-01-01",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	status, out, complaints := p.list(t, "reconcile", "-since", "1d", "-json")
	if status != 1 || !strings.Contains(complaints, "seller-2") {
		t.Errorf("%d, %s", status, complaints)
	}
	if diff := cmp.Diff([]string{"", "seller-1", "seller-1", "seller-2", "seller-3", "seller-3"}, accountsIn(t, out)); diff != "" { // a charge, and the end
		t.Errorf("%s\n%s", diff, out)
	}
}

func TestAListThatIsWrongIsRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	file := filepath.Join(t.TempDir(), "accounts")
	for _, tt := range []struct{ reason, text, want string }{
		{"no key", "seller-1\n", ":1: give an account's name"},
		{"the key itself", "seller-1 $aact_hmlg_secret TOKEN\n", "no key and no token stands in the file"},
		{"a name twice", "seller-1 A\n# a comment\nseller-1 B\n", ":3: the account or its key is there twice"},
		{"a key twice", "seller-1 A\nseller-2 A\n", ":2: the account or its key is there twice"},
		{"nothing", "# nobody\n", "has no account"},
		{"no such account", "seller-2 A\n", `there is no account "seller-1" in the list`},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, complaints := a.queue(t, "status", "-accounts", file, "-account", "seller-1")
		if status != 2 || out != "" || !strings.Contains(complaints, tt.want) || strings.Contains(complaints, "$aact") {
			t.Errorf("%s: %d, %s, %s", tt.reason, status, out, complaints)
		}
	}
	if status, _, complaints := a.queue(t, "status", "-account", "seller-1"); status != 2 || !strings.Contains(complaints, "give that by -accounts") {
		t.Error(status, complaints)
	}
	if status, _, complaints := a.queue(t, "reconcile", "-accounts", file, "-scope", "a", "-since", "1d"); status != 2 || !strings.Contains(complaints, "-account") {
		t.Error(status, complaints)
	}
	if status, _, complaints := a.queue(t, "plan", "-accounts", file); status != 2 || !strings.Contains(complaints, "-name is not given") {
		t.Error(status, complaints)
	}
}

// The program has the list, and the settings of each account's webhook.
func TestAProgramHasTheListAndTheSettings(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	run, out, complaints := p.program(nil)
	run.Accounts = func(yield func(string, *asaas.Client) bool) {
		for _, s := range p.sellers {
			if !yield(s.Name, p.fake.ClientOf(s.APIKey)) {
				return
			}
		}
	}
	run.WebhookOf = func(account string) webhook.Settings {
		return webhook.Settings{Name: "shop", URL: strings.ReplaceAll(p.url, "{account}", account), Email: "ops@shop.example", Token: sellerToken + account, Types: []asaas.EventType{"PAYMENT_RECEIVED"}}
	}
	if status := run.run(t.Context(), []string{"apply", "-sandbox", "-yes"}); status != 0 || strings.Count(out.String(), "the webhook was created") != 3 {
		t.Errorf("%d, %s, %s", status, out, complaints)
	}
}
