package health_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
)

// A message in a chat, by a webhook of Slack, Mattermost or Google Chat. Its address is a secret: read it from the
// environment.
func ExampleNotifier_chat() {
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Method, string(body))
	}))
	defer chat.Close()

	notifier := &health.Notifier{Notify: func(ctx context.Context, r check.Result) error {
		text := fmt.Sprintf("%s: %s fails: %s", r.Source, r.Name, r)
		if r.Healthy {
			text = fmt.Sprintf("%s: %s is well again: %s", r.Source, r.Name, r)
		}
		body, err := json.Marshal(map[string]string{"text": text}) // "content" for Discord
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, chat.URL, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode/100 != 2 {
			return fmt.Errorf("the chat has answered %s", answer.Status)
		}
		return nil
	}}

	// Send one at each deployment: only so does a wrong address show before it is needed.
	for _, r := range []check.Result{
		{Source: "asaas", Name: "workers", Says: "no workers are alive, and 3 events wait for them", Remedy: "start the program"},
		{Source: "asaas", Name: "workers", Healthy: true, Says: "no event waits for workers for long"},
	} {
		if err := notifier.Notify(context.Background(), r); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// POST {"text":"asaas: workers fails: no workers are alive, and 3 events wait for them: start the program"}
	// POST {"text":"asaas: workers is well again: no event waits for workers for long"}
}
