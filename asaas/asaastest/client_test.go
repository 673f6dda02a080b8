package asaastest_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
)

func TestAClientWaitsInTheTimeOfTheFake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := asaastest.New()
		defer fake.Close()
		broken := true
		id := fake.AddWebhook(asaastest.Webhook{Token: "a token", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			dryRun := r.Header.Get(idem.DryRunHeader) != ""
			if broken || dryRun {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			if dryRun {
				fmt.Fprint(w, `{"received":false,"dry_run":"done"}`)
			}
		})})
		fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
		fake.Advance(24 * time.Hour)
		broken = false
		start, began := fake.Now(), time.Now()
		for _, err := range asaas.Recover(t.Context(), fake.Client(), id, "a token") {
			if err != nil {
				t.Error(err)
			}
		}
		if passed := fake.Now().Sub(start); passed != 15*time.Second || !time.Now().Equal(began) || fake.Webhook(id).Pending != 0 {
			t.Errorf("%s passed at the fake, %s really, %d events wait", passed, time.Since(began), fake.Webhook(id).Pending)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if fake.Client().Wait(ctx, time.Hour) == nil || !fake.Now().Equal(start.Add(15*time.Second)) {
			t.Error("it waits though the context is over")
		}
	})
}

func TestAClientIsOfTheEnvironmentOfTheKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"$aact_hmlg_fake", "$aact_prod_fake"} {
		fake := asaastest.New()
		defer fake.Close()
		fake.APIKey = key
		if penalized, err := fake.Client().Penalized(t.Context()); err != nil || penalized != nil {
			t.Errorf("%s: %v, %v", key, penalized, err)
		}
	}
}

// Not parallel: it looks at the log of the process.
func TestAFakeIsQuietUnlessAsked(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	for _, asked := range []bool{false, true} {
		var told bytes.Buffer
		fake := asaastest.New()
		if asked {
			fake.ErrorLog = log.New(&told, "", 0)
		}
		fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") })})
		fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
		fake.Settle()
		fake.Close()
		if got := strings.Contains(told.String(), "a mistake"); got != asked || logged.Len() > 0 {
			t.Errorf("asked: %t, told %q, logged %q", asked, told.String(), logged.String())
		}
	}
}
