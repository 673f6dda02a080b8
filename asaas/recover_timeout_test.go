package asaas

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestADryRunWaitsNoLongerThanAsaas(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := dryRun{target: target, token: "the token", timeout: time.Millisecond}
	err = d.try(t.Context(), []EventType{EventPaymentReceived})
	if err == nil || !strings.Contains(err.Error(), "there is no answer in time, and Asaas waits 10s: see what holds the application up") {
		t.Errorf("got the error %v", err)
	}
}
