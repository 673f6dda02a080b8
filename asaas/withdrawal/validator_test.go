package withdrawal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/withdrawal"
)

const (
	event    = `{"id":"evt_05b708f961d739ea7eba7e4db318f621&1","event":"PAYMENT_CREATED","payment":{"id":"pay_1"}}`
	token    = "whsec-7f0c4b1e9a2d4e6f8b3c5d7e9f1a2b3c"
	oldToken = "whsec-0a1b2c3d4e5f60718293a4b5c6d7e8f9"
)

func sent(tokens ...string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, asaas.TokenHeader: tokens}
}

const undecided = `{"received":false,"reason":"undecided"}`

func approveAll(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
	return withdrawal.Approve(), nil
}

// lines is a log that may be written and read at once.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func logTo(v *withdrawal.Validator) *lines {
	l := new(lines)
	v.Logger = slog.New(slog.NewTextHandler(l, nil))
	return l
}

// ask asks over a real connection, with the token.
func ask(t *testing.T, v *withdrawal.Validator, body string) (status int, answer string) {
	t.Helper()
	server := httptest.NewServer(v)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = sent(token)
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	said, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(said)
}

// brokenLog panics, as a handler of an application may.
type brokenLog struct{ slog.Handler }

func (brokenLog) Enabled(context.Context, slog.Level) bool { panic("the log is broken") }

func TestALoggerThatPanicsCostsNoDecision(t *testing.T) {
	t.Parallel()
	v := withdrawal.NewValidator(token, approveAll)
	v.Logger = slog.New(brokenLog{})
	for body, want := range map[string]struct {
		status int
		answer string
	}{
		transferWithdrawal:                  {200, `{"status":"APPROVED"}`},
		`{"type":"LOTTERY"}`:                {503, undecided},
		`{"id":"1","event":"PAYMENT_PAID"}`: {401, `"reason":"ordinary_event"`},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header = sent(token)
		v.ServeHTTP(w, r)
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.answer) {
			t.Errorf("%s is answered %d %s", body, w.Code, w.Body)
		}
	}
}

func TestOnlyADecisionRefusesAndAllElseIsAskedAgain(t *testing.T) {
	t.Parallel()
	type decide = func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error)
	mustNotRun := func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
		t.Error("the application was asked")
		return withdrawal.Approve(), nil
	}
	for _, tt := range []struct {
		body   string
		decide decide
		want   string
		log    string
		reason string
	}{
		{transferWithdrawal, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
			return withdrawal.Refuse("not ours"), nil
		}, `{"status":"REFUSED","refuseReason":"not ours"}`, "approved=false", "a refusal"},
		{transferWithdrawal, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
			return withdrawal.Decision{}, nil
		}, `{"status":"REFUSED"}`, "approved=false", "the zero Decision"},
		{transferWithdrawal, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
			return withdrawal.Approve(), errors.New("the database is unavailable")
		}, undecided, "the database is unavailable", "an error, whatever the decision beside it"},
		{transferWithdrawal, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) { panic("ouch") }, undecided, "panicked: ouch", "a panic"},
		{transferWithdrawal, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
			runtime.Goexit()
			return withdrawal.Approve(), nil
		}, undecided, "ended its goroutine", "a goroutine that ends"},
		{`{"type":"LOTTERY","lottery":{"id":"1","value":1}}`, mustNotRun, undecided, "kind of the withdrawal is not known", "a new kind"},
		{`{"type":"","transfer":{"id":"1","value":1}}`, mustNotRun, undecided, "kind of the withdrawal is not known", "no kind"},
		{`{"type":"TRANSFER","bill":{"id":"1","value":1}}`, mustNotRun, undecided, "not in the body", "an object that is not the type's"},
		{`{"type":"TRANSFER","transfer":{"id":"1","value":1},"bill":{"id":"2","value":1}}`, mustNotRun, undecided, "several kinds", "two objects"},
		{`{"type":"TRANSFER","transfer":[]}`, mustNotRun, undecided, "in a new shape", "an array"},
		{`{"type":"TRANSFER","transfer":null}`, mustNotRun, undecided, "not in the body", "a null"},
		{`{"type":"TRANSFER","transfer":{"value":1}}`, mustNotRun, undecided, "id is missing", "nothing to look up"},
		{`{"type":"BILL","bill":{"id":"1"}}`, mustNotRun, undecided, "value is missing", "no amount, which is not 0"},
		{`{"type":"TRANSFER","transfer":{"id":"1","value":-1}}`, mustNotRun, undecided, "is negative", "an amount below any limit of the application's"},
		{`{"type":"PIX_REFUND","pixRefund":{"id":"1","value":null}}`, mustNotRun, undecided, "value is null", "an amount of null"},
		{`{"type":"TRANSFER","transfer":{"id":"1","value":"ana@example.com"}}`, mustNotRun, undecided, "field in a new shape", "an amount that is none"},
		{`{"type":"TRANSFER","transfer":{"id":"1","value":1,"account":"12345-6"}}`, mustNotRun, undecided, "transfer.account", "an account in a new shape"},
		{`{"type":"TRANSFER","transfer":{"id":"1","value":1`, mustNotRun, undecided, "does not decode", "half a body"},
		{`null`, mustNotRun, undecided, "kind of the withdrawal is not known", "null"},
		{``, mustNotRun, undecided, "does not decode", "nothing"},
		{`type=TRANSFER`, mustNotRun, undecided, "does not decode", "no JSON"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			v := withdrawal.NewValidator(token, tt.decide)
			log := logTo(v)
			wantStatus := 200
			if tt.want == undecided {
				wantStatus = 503
			}
			if status, answer := ask(t, v, tt.body); status != wantStatus || answer != tt.want {
				t.Errorf("the answer is %d %s, want %d %s", status, answer, wantStatus, tt.want)
			}
			if !strings.Contains(log.String(), tt.log) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("the log is %q, want one line with %q", log, tt.log)
			}
			said := times.ReplaceAllString(log.String(), "") // which may be 422.5 µs
			for _, secret := range []string{"ana@example.com", "22.5", "not ours", token} {
				if strings.Contains(said, secret) {
					t.Errorf("the log tells %q: %s", secret, log)
				}
			}
		})
	}
}

var times = regexp.MustCompile(`(time|duration)=\S+`)

func TestALateDecisionIsAskedAgainInTime(t *testing.T) {
	t.Parallel()
	for _, heeds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			v := withdrawal.NewValidator(token, func(ctx context.Context, _ *asaas.Withdrawal) (withdrawal.Decision, error) {
				if heeds {
					<-ctx.Done()
					return withdrawal.Approve(), ctx.Err()
				}
				<-release // as long as it takes, whatever the context says
				return withdrawal.Approve(), nil
			})
			log := logTo(v)
			r := httptest.NewRequest("POST", "/withdrawals", strings.NewReader(transferWithdrawal))
			r.Header = sent(token)
			w, start := httptest.NewRecorder(), time.Now()
			v.ServeHTTP(w, r)
			took := time.Since(start)
			close(release)
			if w.Code != 503 || w.Body.String() != undecided || took != v.Timeout {
				t.Errorf("heeds its context: %t: after %s the answer is %d %s", heeds, took, w.Code, w.Body)
			}
			if !strings.Contains(log.String(), "context deadline exceeded") {
				t.Errorf("heeds its context: %t: the log is %s", heeds, log)
			}
		})
	}
}

func TestContextEndsWhenAsaasDisconnects(t *testing.T) {
	t.Parallel()
	asked, ended := make(chan struct{}), make(chan struct{})
	v := withdrawal.NewValidator(token, func(ctx context.Context, _ *asaas.Withdrawal) (withdrawal.Decision, error) {
		close(asked)
		<-ctx.Done()
		close(ended)
		return withdrawal.Approve(), nil
	})
	logTo(v)
	server := httptest.NewServer(v)
	defer server.Close()
	ctx, disconnect := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader(transferWithdrawal))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = sent(token)
	go func() {
		<-asked
		disconnect()
	}()
	if answer, err := server.Client().Do(r); err == nil {
		answer.Body.Close()
		t.Error("there was an answer")
	}
	<-ended
}

func TestWhoIsNotAsaasGetsNoDecision(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		configured []string
		header     http.Header
		status     int
		want       string
		reason     string
	}{
		{[]string{token}, sent("guess"), 401, "wrong_token", "a wrong token"},
		{[]string{token}, sent(), 401, "missing_token", "no token"},
		{[]string{token}, sent(""), 401, "missing_token", "an empty token"},
		{[]string{""}, sent(""), 503, "not_configured", "an empty token on both sides"},
		{nil, sent(token), 503, "not_configured", "no token to verify with"},
		{[]string{token, oldToken}, sent(oldToken), 200, "APPROVED", "the old token during a rotation"},
	} {
		v := withdrawal.NewValidator("", approveAll)
		v.Tokens = tt.configured
		log := logTo(v)
		r := httptest.NewRequest("POST", "/withdrawals", strings.NewReader(transferWithdrawal))
		r.Header = tt.header
		w := httptest.NewRecorder()
		v.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: the answer is %d %s", tt.reason, w.Code, w.Body)
		}
		if tt.status != 200 && (strings.Contains(w.Body.String(), "status") || !strings.Contains(log.String(), tt.want)) {
			t.Errorf("%s: the answer is %s, the log %s", tt.reason, w.Body, log)
		}
	}
}

func TestAnEventSentToTheWithdrawalURLIsNotTaken(t *testing.T) {
	t.Parallel()
	v := withdrawal.NewValidator(token, approveAll)
	log := logTo(v)
	status, answer := ask(t, v, event)
	if status != 401 || answer != `{"received":false,"reason":"ordinary_event"}` {
		t.Errorf("the answer is %d %s", status, answer)
	}
	if !strings.Contains(log.String(), "point the webhook at the URL of your event receiver") {
		t.Errorf("the log does not say what to do: %s", log)
	}
}

func TestOnlyAllowedAddressesAskAboutWithdrawals(t *testing.T) {
	t.Parallel()
	v := withdrawal.NewValidator(token, approveAll)
	v.AllowFrom = []netip.Prefix{netip.MustParsePrefix("52.67.12.206/32")}
	v.ClientAddrHeader = "X-Forwarded-For"
	logTo(v)
	for from, want := range map[string]int{"52.67.12.206": 200, "10.0.0.1, 52.67.12.206": 200, "52.67.12.206, 10.0.0.1": 401} {
		r := httptest.NewRequest("POST", "/withdrawals", strings.NewReader(transferWithdrawal))
		r.Header = sent(token)
		r.Header.Set("X-Forwarded-For", from)
		w := httptest.NewRecorder()
		v.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from %s: the answer is %d, want %d", from, w.Code, want)
		}
	}
}

func TestWhatIsNoQuestionIsRejected(t *testing.T) {
	t.Parallel()
	v := withdrawal.NewValidator(token, approveAll)
	logTo(v)
	largest := transferWithdrawal + strings.Repeat(" ", 1<<20-len(transferWithdrawal))
	if status, answer := ask(t, v, largest); status != 200 {
		t.Errorf("the largest body allowed: the answer is %d %s", status, answer)
	}
	if status, answer := ask(t, v, largest+" "); status != 413 || answer != `{"received":false}` {
		t.Errorf("a body too large: the answer is %d %s", status, answer)
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequest("GET", "/withdrawals", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("a GET: the answer is %d, Allow: %q", w.Code, w.Header().Get("Allow"))
	}
}

// A body that is sent too slowly is given up at Timeout.
func TestASlowBodyIsGivenUp(t *testing.T) {
	t.Parallel()
	v := withdrawal.NewValidator(token, approveAll)
	v.Timeout = 50 * time.Millisecond
	logTo(v)
	server := httptest.NewServer(v)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nAsaas-Access-Token: "+token+"\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 408"))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 408" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

func TestAValidatorWithoutAFunctionIsAMistakeAtBoot(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it was made")
		}
	}()
	withdrawal.NewValidator(token, nil)
}
