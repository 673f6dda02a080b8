package idem

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem/health/check"
)

// open is a source that anybody may deliver to.
type open struct{ Routes }

func (*open) Name() string { return "open" }

func (*open) Open(r *http.Request) (Event, error) {
	body, err := ReadBody(r)
	var named struct{ Type string }
	_ = json.Unmarshal(body, &named)
	return Event{Type: named.Type, Payload: body}, err
}

// A provider whose bodies are all altered or drained on the way delivers, and no event arrives.
func TestBodiesThatNameNoEventAreNoSignOfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ep := newEndpoint(&open{})
		ep.Logger = nil
		deliver := func(body string) {
			accept := func(ctx context.Context, d delivery) (Outcome, error) {
				return ep.receive(ctx, d, time.Second, func(context.Context, Event) result { return result{outcome: Parked} })
			}
			ep.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), accept, nil)
		}
		silent := func() bool {
			checks := ep.Examine(t.Context(), check.Limits{MaxSilence: func(time.Time) time.Duration { return time.Hour }})
			return !checks[0].Healthy
		}
		for range 4 {
			time.Sleep(30 * time.Minute)
			for _, body := range []string{"", "\n", "{}", "null", "<html>", `[{"type":"paid"}]`} {
				deliver(body)
			}
		}
		if !silent() {
			t.Error("after two hours of bodies that name no event, silence is healthy")
		}
		if deliver(`{"type":"paid"}`); silent() {
			t.Error("after an event, silence is not healthy")
		}
	})
}

func TestAnUnreadableBodyIsDescribedWithoutItsContent(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"":                                     "empty",
		"\x1f\x8b\x08cpf":                      "compressed",
		"\xff\xfec\x00p\x00f\x00":              "UTF-16",
		"\xef\xbb\xbf{\"cpf\":1}":              "byte order mark",
		"<cpf/>":                               "HTML or XML",
		`{"cpf":1}`:                            "an envelope",
		`["cpf"]`:                              "a JSON array",
		`"cpf"`:                                "a JSON string",
		`{"cpf":`:                              "not whole",
		"Y3BmY3BmY3BmY3BmY3BmY3Bm":             "in base64",
		"Y3BmY3BmY3BmY3BmY3BmY3BmYw==":         "in base64",
		"cpf=12345678909&name=x":               "a form",
		"cpf is 12345678909":                   "no JSON object",
		"12345678909":                          "no JSON object",
		strings.Repeat(" ", 100) + `{"cpf":1}`: "an envelope",
	} {
		if err := unreadable([]byte(body)); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "cpf") {
			t.Errorf("%.40q: %v, want %q in it", body, err, want)
		}
	}
}
