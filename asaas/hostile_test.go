package asaas_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/withdrawal"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// till is an application that counts its payments.
type till struct {
	pool *pgxpool.Pool
	addr string
}

// newTill serves an application with WorkFirst.
func newTill(t *testing.T) *till {
	t.Helper()
	pool := testkit.Open(t)
	if _, err := pool.Exec(t.Context(), `create table payments (charge text)`); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into payments values ($1)`, e.Payment.ID)
		return err
	})
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	inbox.Timeout = time.Minute // for -race on a slow machine
	inbox.Logger = slog.New(slog.DiscardHandler)
	server := httptest.NewServer(inbox)
	t.Cleanup(server.Close)
	return &till{pool, server.Listener.Addr().String()}
}

// statuses are the answers to a request, sent as it is, until the server closes
// the connection.
func statuses(t *testing.T, addr string, request ...string) (all []int) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() {
		for _, part := range request { // the server may not read it all
			_, _ = io.WriteString(conn, part)
		}
	}()
	for r := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return all
		}
		all = append(all, answer.StatusCode)
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

// posted is the head of a request, with its headers.
func posted(body string, headers ...string) string {
	head := append([]string{"POST /webhooks/asaas HTTP/1.1", "Host: shop", "Connection: close", fmt.Sprintf("Content-Length: %d", len(body))}, headers...)
	return strings.Join(head, "\r\n") + "\r\n\r\n"
}

const proof = "asaas-access-token: " + token

// wantStored checks how many events and payments there are.
func (s *till) wantStored(t *testing.T, events, payments int) {
	t.Helper()
	var e, p int
	err := s.pool.QueryRow(t.Context(), `select (select count(*) from idem_events), (select count(*) from payments)`).Scan(&e, &p)
	if err != nil || e != events || p != payments {
		t.Errorf("%d events and %d payments are stored, %v, want %d and %d", e, p, err, events, payments)
	}
}

func TestATokenInAnotherPlaceThanItsHeaderIsNone(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	body := string(asaastest.Event("PAYMENT_RECEIVED"))
	for _, c := range []struct {
		why     string
		headers []string
	}{
		{"none", nil},
		{"twice", []string{proof, proof}},
		{"twice, in two cases", []string{proof, "ASAAS-ACCESS-TOKEN: " + token}},
		{"behind a wrong one", []string{"asaas-access-token: guess", proof}},
		{"before an empty one", []string{proof, "asaas-access-token:"}},
		{"in a list", []string{"asaas-access-token: guess, " + token}},
		{"with underscores", []string{"asaas_access_token: " + token}},
		{"as a cookie", []string{"Cookie: asaas-access-token=" + token}},
		{"as a password", []string{"Authorization: Bearer " + token}},
		{"100 KB of it", []string{"asaas-access-token: " + strings.Repeat(token, 3000)}},
		{"folded", []string{"asaas-access-token: whsec-7f0c\r\n 4b1e9a2d4e6f8b3c5d7e9f1a2b3c"}},
	} {
		if got := statuses(t, s.addr, posted(body, c.headers...), body); !slices.Equal(got, []int{401}) {
			t.Errorf("%s: answered %v, want 401", c.why, got)
		}
	}
	s.wantStored(t, 0, 0)
	if got := statuses(t, s.addr, posted(body, proof), body); !slices.Equal(got, []int{200}) {
		t.Errorf("the right one is answered %v", got)
	}
	s.wantStored(t, 1, 1)
}

// Who asks whether a withdrawal may be made gets an approval only for a genuine
// question.
func TestHostileQuestionsApproveNothing(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	validator := withdrawal.NewValidator(token, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
		asked.Add(1)
		return withdrawal.Approve(), nil
	})
	validator.Logger = nil
	server := httptest.NewServer(validator)
	defer server.Close()
	addr := server.Listener.Addr().String()
	const body = `{"type":"TRANSFER","transfer":{"id":"1","value":22.5}}`
	large := `{"type":"TRANSFER","transfer":{"id":"1"}}` + strings.Repeat(" ", 1<<20)
	deep := `{"type":"TRANSFER","transfer":{"id":"1"},"x":` + strings.Repeat("[", 11000)
	for _, c := range []struct {
		why, request string
		want         []int
	}{
		{"two tokens", posted(body, proof, proof) + body, []int{401}},
		{"no token", posted(body) + body, []int{401}},
		{"a method in lower case", strings.Replace(posted(body, proof), "POST", "post", 1) + body, []int{405}},
		{"GET", strings.Replace(posted(body, proof), "POST", "GET", 1) + body, []int{405}},
		{"over a megabyte", posted(large, proof) + large, []int{413}},
		{"gzip", posted("\x1f\x8b\x08\x00", proof, "Content-Encoding: gzip") + "\x1f\x8b\x08\x00", []int{503}},
		{"too deep", posted(deep, proof) + deep, []int{503}},
	} {
		if got := statuses(t, addr, c.request); !slices.Equal(got, c.want) {
			t.Errorf("%s: answered %v, want %v", c.why, got, c.want)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d questions that were none reached the application", n)
	}
	if got := statuses(t, addr, posted(body, proof)+body); !slices.Equal(got, []int{200}) || asked.Load() != 1 {
		t.Errorf("a genuine question is answered %v, and was asked %d times", got, asked.Load())
	}
}

// A request opens an event only with the one token, in one header, and the event
// is what its body alone says. What is refused is refused for a reason.
func FuzzOpen(f *testing.F) {
	f.Add("Asaas-Access-Token", token, "X", "", "application/json", []byte(event))
	f.Add("asaas-access-token", token, "ASAAS-ACCESS-TOKEN", token, "", []byte(event))
	f.Add("asaas-access-token", " "+token, "asaas_access_token", token, "application/x-www-form-urlencoded; x", []byte(`{}`))
	f.Add("Asaas-Access-Token", token, "", "", `application/x-www-form-urlencoded; a="`, []byte(`{"type":"TRANSFER","transfer":{}}`))
	f.Add("X", token, "Asaas-Access-Token", oldToken, "", []byte("{\"event\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, name, value, otherName, otherValue, contentType string, body []byte) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Content-Type"] = []string{contentType}
		r.Header[name] = append(r.Header[name], value)
		r.Header[otherName] = append(r.Header[otherName], otherValue)
		sent := 0
		right := false
		for n, values := range r.Header {
			if strings.EqualFold(n, asaas.TokenHeader) {
				sent += len(values)
				right = right || values[0] == token
			}
		}
		e, err := asaas.NewDispatcher(token).Open(withBody(r, body))
		if err != nil {
			var refusal *idem.Refusal
			if !errors.As(err, &refusal) || refusal.Reason == idem.ReasonNotConfigured {
				t.Errorf("it is refused for %v", err)
			}
			if diff := cmp.Diff(idem.Event{}, e); diff != "" {
				t.Errorf("it is refused, and yet an event:\n%s", diff)
			}
			return
		}
		if sent != 1 || !right {
			t.Errorf("%q is opened with %d tokens, right: %t", body, sent, right)
		}
		if diff := cmp.Diff(asaas.Identify(body), e); diff != "" {
			t.Errorf("what is opened is not what the body says:\n%s", diff)
		}
	})
}

// What decodes can be kept and decoded again, and is still the same.
func FuzzParse(f *testing.F) {
	for _, name := range bodies {
		f.Add(testdata(f, name))
	}
	for _, body := range []string{
		`{"event":"NEWS","x":[1,{"y":null}]}`, `{"event":"PAYMENT_CREATED","payment":{"value":1.10,"dueDate":"","split":[]}}`,
		`{"event":"PAYMENT_CREATED","PAYMENT":{"id":"\u0000\ud800"},"payment":null}`, `{"event":"BILL_PAID","bill":{"value":"1,5"}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := asaas.Parse(body)
		if err != nil {
			if e != nil || !strings.HasPrefix(err.Error(), "asaas: ") {
				t.Errorf("%q: %v, %v", body, e, err)
			}
			return
		}
		once := kept(t, e)
		again, err := asaas.Parse(once)
		if err != nil {
			t.Fatalf("%q is kept as %s, which does not decode: %v", body, once, err)
		}
		if twice := kept(t, again); string(once) != string(twice) {
			t.Errorf("kept once:\n%s\nand twice:\n%s", once, twice)
		}
	})
}

func kept(t *testing.T, e asaas.Event) []byte {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Nobody passes for Asaas by what is in front of the address that the nearest
// proxy wrote.
func FuzzSendersAddress(f *testing.F) {
	f.Add("52.67.12.206", "203.0.113.9")
	f.Add("52.67.12.206, ", "[2001:db8::1]:80")
	f.Add("x", "::ffff:203.0.113.9%eth0")
	f.Add("", "52.67.12.207:1")
	f.Fuzz(func(t *testing.T, written, last string) {
		d := asaas.NewDispatcher(token)
		d.AllowFrom, d.ClientAddrHeader = asaas.OfficialAddresses(), "X-Forwarded-For"
		if strings.Contains(last, ",") {
			return
		}
		bare := strings.Trim(strings.TrimSpace(last), "[]")
		address, err := netip.ParseAddr(bare)
		if withPort, e := netip.ParseAddrPort(strings.TrimSpace(last)); e == nil {
			address, err = withPort.Addr(), nil
		}
		official := false
		for _, p := range asaas.OfficialAddresses() {
			official = official || err == nil && p.Contains(address.Unmap().WithZone(""))
		}
		for _, lines := range [][]string{{written + "," + last}, {written, last}, {last}} {
			r := httptest.NewRequest("POST", "/", nil)
			r.RemoteAddr = "52.67.12.206:443" // the proxy's, which does not count
			r.Header["X-Forwarded-For"] = lines
			r.Header.Set(asaas.TokenHeader, token)
			if _, err := d.Open(withBody(r, []byte(event))); (err == nil) != official {
				t.Errorf("%q, official: %t: %v", lines, official, err)
			}
		}
	})
}
