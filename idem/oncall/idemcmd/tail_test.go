package idemcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/internal/command"
)

// tailing is a running idem tail.
type tailing struct {
	*testing.T
	address string
	out     *bufio.Reader
	stop    func() (status int)
}

func tailed(t *testing.T, args ...string) *tailing {
	t.Helper()
	out, in := io.Pipe()
	said, says := io.Pipe()
	p := newProgram(Command{Args: append([]string{"tail", "-listen", "127.0.0.1:0"}, args...), Stdout: in, Stderr: says})
	p.zone, p.now = time.UTC, func() time.Time { return time.Date(2026, 11, 28, 16, 3, 11, 0, time.UTC) }
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan int, 1)
	go func() {
		status := p.run(ctx)
		_, _ = in.Close(), says.Close()
		ended <- status
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, said) }()
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(line)
	if err != nil || address == "" {
		t.Fatalf("it says %q, %v", line, err)
	}
	return &tailing{t, address, bufio.NewReader(out), func() int {
		cancel()
		return <-ended
	}}
}

// deliver sends a body, and returns the answer and the line.
func (t *tailing) deliver(path, token, body string) (status int, answer, line string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, t.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Token", token)
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	said := make(chan string, 1)
	go func() {
		text, _ := t.out.ReadString('\n')
		said <- text
	}()
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text), <-said
}

const paidBody = `{"id":"evt_1&2","event":"PAYMENT_RECEIVED","payment":{"id":"pay_1","customer":"Ana"}}`

func TestTailShowsEachDeliveryAndItsAnswerAndChangesNeither(t *testing.T) {
	t.Parallel()
	type request struct{ Method, Path, Query, Token, Sender, Host, Body string }
	var got request
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("X-Token"), r.Header.Get("X-Forwarded-For"), r.Host, string(body)}
		if r.Header.Get("X-Token") != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"received":false,"reason":"wrong_token"}`)
			return
		}
		_, _ = io.WriteString(w, `{"received":true}`)
	}))
	defer program.Close()
	tail := tailed(t, program.URL)
	host := strings.TrimPrefix(tail.address, "http://")
	for _, c := range []struct {
		reason, path, token, body string
		status                    int
		answer, line              string
	}{
		{
			"stored", "/webhooks/asaas?key=secret;a", "right", paidBody, 200, `{"received":true}`,
			"16:03:11 200 0.0 ms POST /webhooks/asaas PAYMENT_RECEIVED evt_1&2\n",
		},
		{
			"refused", "/webhooks/asaas", "wrong", paidBody, 401, `{"received":false,"reason":"wrong_token"}`,
			"16:03:11 401 0.0 ms POST /webhooks/asaas PAYMENT_RECEIVED evt_1&2 wrong_token\n",
		},
		{
			"another provider's", "/webhooks/zeltapay", "right", `{"type":"payment.success","id":"e2"}`, 200, `{"received":true}`,
			"16:03:11 200 0.0 ms POST /webhooks/zeltapay payment.success e2\n",
		},
		{
			"no event, and of a stranger that writes on a terminal", "/\x1b%1b[2Jx", "", "\x1b[2J", 401, `{"received":false,"reason":"wrong_token"}`,
			"16:03:11 401 0.0 ms POST / [2Jx no type no id wrong_token\n",
		},
	} {
		path, query, _ := strings.Cut(strings.ReplaceAll(c.path, "\x1b", ""), "?")
		status, answer, line := tail.deliver(strings.ReplaceAll(c.path, "\x1b", ""), c.token, c.body)
		if status != c.status || answer != c.answer || line != c.line {
			t.Errorf("%s: %d %s, and it prints\n%q, want\n%q", c.reason, status, answer, line, c.line)
		}
		want := request{"POST", strings.ReplaceAll(path, "%1b", "\x1b"), query, c.token, "192.0.2.1", host, c.body}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the program gets (-want +got):\n%s", c.reason, diff)
		}
	}
	program.Close()
	if status, _, line := tail.deliver("/webhooks/asaas", "right", paidBody); status != 502 || !strings.Contains(line, " 502 ") || !strings.Contains(line, "is the program running?") {
		t.Errorf("without the program: %d, and it prints %q", status, line)
	}
	if status := tail.stop(); status != command.Done {
		t.Errorf("it ends with status %d", status)
	}
}

func TestTailKeepsBodiesBeforeItAnswers(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "bodies")
	tail := tailed(t, "-keep", folder, "-json")
	for _, body := range []string{paidBody, paidBody, `{"event":"../../etc/passwd"}`, `not JSON`} {
		status, _, line := tail.deliver("/any", "", body)
		var d delivery
		if err := json.Unmarshal([]byte(line), &d); err != nil || status != 200 || d.Status != 200 || d.Bytes != len(body) {
			t.Fatalf("status %d, and it prints %s, %v", status, line, err)
		}
		kept, err := os.ReadFile(filepath.Join(folder, d.File))
		if err != nil || string(kept) != body {
			t.Errorf("the file %s has %q, %v", d.File, kept, err)
		}
	}
	all, err := os.ReadDir(folder)
	if err != nil || len(all) != 4 {
		t.Fatalf("the folder has %v, %v", all, err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if status, answer, _ := tail.deliver("/any", "", paidBody); status != 503 {
		t.Errorf("what cannot be kept is answered %d, %s", status, answer)
	}
}

func TestTailSaysWhatItsAddressHasToBe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"8080"}, {"ftp://127.0.0.1"}, {"http://127.0.0.1:8080?x=1"}} {
		var says strings.Builder
		p := newProgram(Command{Args: append([]string{"tail"}, args...), Stderr: &says})
		if status := p.run(t.Context()); status != command.Misused || !strings.Contains(says.String(), "http://127.0.0.1:8080") {
			t.Errorf("%q: status %d, %s", args, status, &says)
		}
	}
}
