package canary_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/internal/testkit"
)

func TestCanaryThatFailsOrDoesNotRunMakesHealthRed(t *testing.T) {
	t.Parallel()
	s := &testkit.Shop{TB: t}
	synctest.Test(t, func(t *testing.T) {
		way := &scriptedWay{answers: []string{"", "", fine}}
		c := newCanary("https://shop.example/hooks", "right")
		c.Transport = way
		h := s.NewHealth(c)
		for n, want := range []struct{ reason, check, says string }{
			{"not delivered yet", "", ""},
			{"failed once", "", ""},
			{"failed twice", "canary", "canary: notes: there was no answer"},
			{"recovered", "", ""},
		} {
			if n > 0 {
				_ = c.Send(t.Context())
			}
			s.WantHealth(want.reason, h, want.check, want.says)
			time.Sleep(c.Every)
		}
		time.Sleep(3 * c.Every)
		s.WantHealth("it was stopped", h, "canary", "it does not run: have the program run it, as it runs the inbox")
		h = s.NewHealth(newCanary("https://shop.example/hooks", "right"))
		time.Sleep(2 * time.Minute)
		s.WantHealth("it was never started", h, "canary", "it does not run: have the program run it, as it runs the inbox")
	})
	if n := strings.Count(s.Logged(), "webhook health check fails"); n != 3 {
		t.Errorf("%d lines tell that it fails, want 3:\n%s", n, s.Logged())
	}
	if n := strings.Count(s.Logged(), "webhook health check is well again"); n != 1 {
		t.Errorf("%d lines tell that it is well again, want 1:\n%s", n, s.Logged())
	}
}

// Whoever may ask may be anybody: hosts, users and addresses are for the log.
func TestHealthSaysNoCauseOfACanarysFailure(t *testing.T) {
	t.Parallel()
	s := &testkit.Shop{TB: t}
	c := newCanary("https://shop.example/hooks?key=hidden", "right")
	c.Transport = wayWithASecret{}
	h := s.NewHealth(c)
	for range 2 {
		_ = c.Send(t.Context())
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if body := w.Body.String(); w.Code != 503 || !strings.Contains(body, "see whether the application runs") || strings.Contains(body, "10.0.0.7") || strings.Contains(body, "hidden") {
		t.Errorf("%d %s", w.Code, body)
	}
	if !strings.Contains(s.Logged(), "10.0.0.7") {
		t.Errorf("the log has no cause: %s", s.Logged())
	}
}

// wayWithASecret fails as a Transport of an application does that says too much.
type wayWithASecret struct{}

func (wayWithASecret) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("10.0.0.7 knows no %s", r.URL)
}
