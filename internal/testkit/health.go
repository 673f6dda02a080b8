package testkit

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/health"
)

// NewHealth returns a health that has looked at nothing yet.
func (s *Shop) NewHealth(parts ...health.Part) *health.Health {
	h := health.New(parts...)
	h.Timeout = 10 * time.Second // Postgres is not unavailable because the machine is busy
	h.Logger = s.Logger()
	return h
}

// WantHealth asks over HTTP, and checks what fails, one check or several; "" is nothing. In says, … stands for
// what changes with the time.
func (s *Shop) WantHealth(reason string, h *health.Health, check, says string) {
	s.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	var report health.Report
	if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil {
		s.Fatalf("%s: it is answered %d %s: %v", reason, w.Code, w.Body, err)
	}
	status := http.StatusOK
	if check != "" {
		status = http.StatusServiceUnavailable
	}
	if w.Code != status || report.Healthy != (check == "") || w.Header().Get("Content-Type") != "application/json" {
		s.Errorf("%s: it is answered %d %s, want %d", reason, w.Code, w.Body, status)
	}
	found, sayer := false, regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(says), "…", ".*"))
	for _, c := range report.Checks {
		if c.Healthy != (check == "" || !strings.Contains(check, c.Name)) {
			s.Errorf("%s: %+v", reason, c)
		}
		found = found || check != "" && strings.Contains(check, c.Name) && sayer.MatchString(c.String())
	}
	if check != "" && !found {
		s.Errorf("%s: it says %s, want %q of %s", reason, w.Body, says, check)
	}
}
