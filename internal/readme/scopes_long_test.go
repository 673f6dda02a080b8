//go:build long

package readme

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestTheLoopOfTheRecipeGivesEachAccountATokenAndAScope(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher("the token of all")
	events.Accounts = func(*http.Request) (all []idem.Credentials, err error) {
		for _, scope := range []string{"acc-1", "acc-2", "acc-3"} {
			all = append(all, idem.Credentials{Scope: scope, Secrets: []string{"a-token-of-kqzmwxbvhtrplnsfgdjy-" + scope}})
		}
		return all, nil
	}
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = nil
	program := httptest.NewServer(inbox)
	t.Cleanup(program.Close)
	fake := asaastest.NewServer()
	t.Cleanup(fake.Close)
	id := fake.AddWebhook(asaastest.Webhook{URL: program.URL, Token: "the token of all", Events: []asaas.EventType{asaas.EventPaymentReceived}})
	wantScopes := func(want ...string) {
		t.Helper()
		fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
		fake.Advance(0)
		var scopes []string
		if err := pool.QueryRow(t.Context(), `select array_agg(scope order by received_at) from idem_event_log`).Scan(&scopes); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, scopes); diff != "" {
			t.Errorf("scopes of events (-want +got):\n%s", diff)
		}
	}
	wantScopes("")

	folder := t.TempDir()
	accounts := id + " " + fake.APIKey + " a-token-of-kqzmwxbvhtrplnsfgdjy-acc-1\n" + id + " $aact_hmlg_of_nobody a-token-of-kqzmwxbvhtrplnsfgdjy-acc-2\n"
	if err := os.WriteFile(filepath.Join(folder, "accounts.txt"), []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "build", "-o", filepath.Join(folder, "asaas-queue"), filepath.Join(root, "asaas/cmd/asaas-queue"))
	loop := section(t, "docs/recipes.md", "## From one URL and one token to scopes", "sh")[0]
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(loop, "rotate ", "rotate -sandbox "))
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "ASAAS_BASE_URL="+fake.URL+"/v3")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "see to "+id) != 1 {
		t.Fatalf("%v:\n%s", err, out)
	}
	wantScopes("", "acc-1")
}
