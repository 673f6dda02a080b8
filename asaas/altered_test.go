package asaas_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// counter is an application that counts its payments, with one receiver of each kind.
type counter struct {
	*testing.T
	pool   *pgxpool.Pool
	events *asaas.Dispatcher
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table payments (charge text)`); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into payments values ($1)`, e.Payment.ID)
		return err
	})
	return &counter{t, pool, events}
}

// receivers are a new receiver of each kind, and the work that follows its deliveries.
func (c *counter) receivers() map[string]receiver {
	quiet := slog.New(slog.DiscardHandler)
	first, inbox := idem.NewInbox(c.pool, c.events), idem.NewInbox(c.pool, c.events)
	first.WorkFirst = true
	first.Logger, inbox.Logger = quiet, quiet
	return map[string]receiver{
		"first": {first, quietHealth(first), func() error { return nil }},
		"inbox": {inbox, quietHealth(inbox), func() error { return inbox.Drain(c.Context()) }},
	}
}

type receiver struct {
	http.Handler
	health *health.Health
	work   func() error
}

// stored are the states and errors of the events, and the payments beside them.
func (c *counter) stored() (states, errs []string, payments int) {
	c.Helper()
	rows, err := c.pool.Query(c.Context(), `select state, coalesce(last_error, '') from idem_events`)
	if err != nil {
		c.Fatal(err)
	}
	var state, text string
	if _, err := pgx.ForEachRow(rows, []any{&state, &text}, func() error {
		states, errs = append(states, state), append(errs, text)
		return nil
	}); err != nil {
		c.Fatal(err)
	}
	if err := c.pool.QueryRow(c.Context(), `select count(*) from payments`).Scan(&payments); err != nil {
		c.Fatal(err)
	}
	return states, errs, payments
}

// post delivers a body through what is in front of a receiver.
func (c *counter) post(front http.Handler, header http.Header, body []byte) (status int, answer string) {
	c.Helper()
	server := httptest.NewServer(front)
	defer server.Close()
	r, err := http.NewRequestWithContext(c.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	maps.Copy(r.Header, header)
	r.Header.Set(asaas.TokenHeader, token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func quietHealth(part health.Part) *health.Health {
	h := health.New(part)
	h.Logger = nil
	return h
}

// red returns the texts of the checks that are not healthy, by their names.
func red(h *health.Health) map[string]string {
	all := make(map[string]string)
	for _, c := range h.Report().Checks {
		if !c.Healthy {
			all[c.Name] = c.String()
		}
	}
	return all
}

// altering passes another body on.
func altering(alter func([]byte) []byte, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		body = alter(body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// A middleware that reads the body leaves an empty one: ten paid Pix would be one event and nine duplicates of it.
func TestEmptyBodyIsNeverAcknowledged(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	is := func(text string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return altering(func([]byte) []byte { return []byte(text) }, next)
		}
	}
	for why, front := range map[string]struct {
		alter  func(next http.Handler) http.Handler
		reason string
	}{
		"a logger has drained it": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				next.ServeHTTP(w, r)
			})
		}, "empty_body"},
		"a logger has closed it": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
				next.ServeHTTP(w, r)
			})
		}, "body_not_whole"},
		"a middleware has looked for a form": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				_ = r.ParseForm()
				next.ServeHTTP(w, r)
			})
		}, "empty_body"},
		"no body is passed on": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body, r.ContentLength = http.NoBody, 0
				next.ServeHTTP(w, r)
			})
		}, "empty_body"},
		"a line break": {is("\n"), "empty_body"},
		"white space":  {is(" \t\r\n "), "empty_body"},
	} {
		for kind, receiver := range c.receivers() {
			for n := range 10 {
				status, answer := c.post(front.alter(receiver), nil, asaastest.Event(asaas.EventPaymentReceived, asaastest.Set("payment.id", fmt.Sprintf("pay_%d", n))))
				if want := fmt.Sprintf(`{"received":false,"reason":%q}`, front.reason); status != http.StatusServiceUnavailable || answer != want {
					t.Fatalf("%s, %s: answered %d %s, want 503 %s", why, kind, status, answer, want)
				}
			}
			if states, _, payments := c.stored(); states != nil || payments != 0 {
				t.Errorf("%s, %s: stored as %q, %d payments", why, kind, states, payments)
			}
			says := red(receiver.health)["deliveries"]
			hint := "something in front of the receiver has read it"
			if front.reason == "body_not_whole" {
				hint = "the body did not arrive whole"
			}
			if !strings.HasPrefix(says, "10 deliveries have failed in a row") || !strings.Contains(says, front.reason+" 10") || !strings.Contains(says, hint) {
				t.Errorf("%s, %s: health says %q", why, kind, says)
			}
		}
	}
}

// What gateways, adapters, firewalls and loggers make of a body. None of it comes from Asaas.
func TestBodyThatNamesNoEventIsParkedEachTimeItComes(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	zip := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	}
	deflated := func(b []byte) []byte {
		var out bytes.Buffer
		w := zlib.NewWriter(&out)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	}
	utf16s := func(order binary.AppendByteOrder, mark []uint16) func([]byte) []byte {
		return func(b []byte) (out []byte) {
			for _, unit := range append(mark, utf16.Encode([]rune(string(b)))...) {
				out = order.AppendUint16(out, unit)
			}
			return out
		}
	}
	text := func(b []byte) string { s, _ := json.Marshal(string(b)); return string(s) }
	around := func(before, after string) func([]byte) []byte {
		return func(b []byte) []byte { return []byte(before + string(b) + after) }
	}
	is := func(text string) func([]byte) []byte { return func([]byte) []byte { return []byte(text) } }
	cut := func(part float64) func([]byte) []byte {
		return func(b []byte) []byte { return b[:int(float64(len(b))*part)] }
	}
	envelope, array, cutOff, noJSON := "an envelope", "a JSON array", "JSON that is not whole", "no JSON object"
	for _, row := range []struct {
		why    string
		header http.Header
		alter  func([]byte) []byte
		error  string
	}{
		{"a proxy that compresses", http.Header{"Content-Encoding": {"gzip"}}, zip, "compressed (gzip)"},
		{"one that does not say so", nil, zip, "compressed (gzip)"},
		{"deflate", http.Header{"Content-Encoding": {"deflate"}}, deflated, noJSON},
		{"a form of one field", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, func(b []byte) []byte {
			return []byte(url.Values{"data": {string(b)}}.Encode())
		}, "a form"},
		{"a form with the body as a name", nil, func(b []byte) []byte { return []byte(url.QueryEscape(string(b)) + "=") }, "a form"},
		{"a form of the fields", nil, is("id=evt_1%261&event=PAYMENT_RECEIVED&payment%5Bid%5D=pay_1"), "a form"},
		{"a multipart form", http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, around("--x\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n", "\r\n--x--\r\n"), noJSON},
		{"Lambda's isBase64Encoded", nil, func(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }, "in base64"},
		{"base64 for URLs", nil, func(b []byte) []byte { return []byte(base64.RawURLEncoding.EncodeToString(b)) }, "in base64"},
		{"UTF-16 of Windows", nil, utf16s(binary.LittleEndian, []uint16{0xfeff}), "UTF-16"},
		{"UTF-16 without a mark", nil, utf16s(binary.BigEndian, nil), "UTF-16"},
		{"a byte order mark", nil, around("\ufeff", ""), "a byte order mark"},
		{"a JSON string", nil, func(b []byte) []byte { return []byte(text(b)) }, "a JSON string"},
		{"quotes that are escaped", nil, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"`), []byte(`\"`)) }, cutOff},
		{"an array", nil, around("[", "]"), array},
		{"an empty array", nil, is("[]"), array},
		{"API Gateway's event", nil, func(b []byte) []byte { return []byte(`{"httpMethod":"POST","headers":{},"body":` + text(b) + `}`) }, envelope},
		{"a wrapper", nil, around(`{"data":`, "}"), envelope},
		{"a wrapper by the name of the name", nil, around(`{"event":`, "}"), envelope},
		{"a wrapper with an id", nil, around(`{"id":"1","detail-type":"webhook","detail":`, "}"), envelope},
		{"a CloudEvent", nil, around(`{"specversion":"1.0","id":"1","source":"/gw","type":"asaas","data":`, "}"), envelope},
		{"SNS", nil, func(b []byte) []byte {
			return []byte(`{"Type":"Notification","MessageId":"1","Message":` + text(b) + `}`)
		}, envelope},
		{"a wrapper with a name of its own", nil, func(b []byte) []byte {
			return []byte(`{"id":"1","event":"message","data":` + string(b) + `}`)
		}, envelope},
		{"a wrapper with a capital in its name", nil, func(b []byte) []byte {
			return []byte(`{"event":"Webhook.received","payload":` + text(b) + `}`)
		}, envelope},
		{"a name in small letters", nil, is(`{"id":"evt_9&9","event":"payment_received","payment":{"id":"pay_1"}}`), envelope},
		{"a name that is a space", nil, is(`{"id":"evt_9&9","event":" ","payment":{"id":"pay_1"}}`), envelope},
		{"a name that is null", nil, is(`{"id":"evt_9&9","event":null,"payment":{"id":"pay_1"}}`), envelope},
		{"a name that is empty", nil, is(`{"id":"evt_9&9","event":"","payment":{"id":"pay_1"}}`), envelope},
		{"nothing in an object", nil, is("{}"), envelope},
		{"null", nil, is("null"), noJSON},
		{"a script's text of an object", nil, is("[object Object]"), cutOff},
		{"a script's nothing", nil, is("undefined"), noJSON},
		{"Go's text of a map", nil, is("map[event:PAYMENT_RECEIVED id:evt_1&1]"), noJSON},
		{"Python's text of a dict", nil, is("{'event': 'PAYMENT_RECEIVED', 'id': 'evt_1&1'}"), cutOff},
		{"a firewall's page", nil, is("<!DOCTYPE html><html><body>Request blocked</body></html>"), "a page of HTML"},
		{"XML", nil, is(`<?xml version="1.0"?><event>PAYMENT_RECEIVED</event>`), "a page of HTML or XML"},
		{"one letter", nil, cut(0.001), cutOff},
		{"half of it", nil, cut(0.5), cutOff},
		{"all but the end", nil, cut(0.999), cutOff},
		{"twice", nil, func(b []byte) []byte { return append(append(bytes.Clone(b), '\n'), b...) }, cutOff},
		{"zeros behind it", nil, around("", "\x00\x00"), cutOff},
		{"a guard against scripts", nil, around(")]}',\n", ""), noJSON},
		{"a call of a script", nil, around("callback(", ");"), noJSON},
	} {
		for kind, receiver := range c.receivers() {
			if _, err := c.pool.Exec(t.Context(), `truncate idem_events, idem_payloads, payments`); err != nil {
				t.Fatal(err)
			}
			body := asaastest.Event(asaas.EventPaymentReceived)
			deliver := func(front http.Handler) {
				t.Helper()
				if status, answer := c.post(front, row.header, body); status != http.StatusOK || answer != `{"received":true}` {
					t.Errorf("%s, %s: answered %d %s", row.why, kind, status, answer)
				}
				if err := receiver.work(); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{"parked", "parked"}
			deliver(altering(row.alter, receiver))
			deliver(altering(row.alter, receiver))
			states, errs, payments := c.stored()
			if !slices.Equal(states, want) || payments != 0 || !strings.Contains(errs[0], row.error) {
				t.Errorf("%s, %s: stored as %q, %d payments, want %q: %s", row.why, kind, states, payments, want, errs)
			}
			if says := red(receiver.health)["parked"]; says == "" {
				t.Errorf("%s, %s: health is not red: %v", row.why, kind, red(receiver.health))
			}
			deliver(receiver)
			if _, _, payments := c.stored(); payments != 1 {
				t.Errorf("%s, %s: %d payments once it came as Asaas sent it", row.why, kind, payments)
			}
		}
	}
}

// The name is there, and the rest is not JSON any more.
func TestBodyWithAMaskedFieldIsParkedAlsoWithoutAHandler(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	mask := func(b []byte) []byte { return bytes.Replace(b, []byte(`"value":`), []byte(`"value":***`), 1) }
	for _, of := range []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentCreated} { // the first has a handler
		for kind, receiver := range c.receivers() {
			if _, err := c.pool.Exec(t.Context(), `truncate idem_events, idem_payloads, payments`); err != nil {
				t.Fatal(err)
			}
			status, answer := c.post(altering(mask, receiver), nil, asaastest.Event(of))
			if err := receiver.work(); err != nil {
				t.Fatal(err)
			}
			if states, errs, payments := c.stored(); status != http.StatusOK || !slices.Equal(states, []string{"parked"}) || payments != 0 {
				t.Errorf("%s, %s: answered %d %s, stored as %q, %d payments: %s", of, kind, status, answer, states, payments, errs)
			}
			if red(receiver.health)["parked"] == "" {
				t.Errorf("%s, %s: health is not red", of, kind)
			}
		}
	}
}

// The body decides, whatever else a proxy has changed.
func TestBodyThatNamesItsEventIsHandledWhateverIsAroundIt(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	indented := func(b []byte) []byte {
		var out bytes.Buffer
		_ = json.Indent(&out, b, "", "  ")
		return out.Bytes()
	}
	same := func(b []byte) []byte { return b }
	for why, row := range map[string]struct {
		header http.Header
		alter  func([]byte) []byte
	}{
		"curl -d":                    {http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, same},
		"text":                       {http.Header{"Content-Type": {"text/plain; charset=iso-8859-1"}}, same},
		"no type":                    {http.Header{}, same},
		"a wrong word of a encoding": {http.Header{"Content-Encoding": {"gzip"}}, same},
		"formatted anew":             {nil, indented},
		"a line break behind it":     {nil, func(b []byte) []byte { return append(bytes.Clone(b), "\r\n"...) }},
	} {
		for kind, receiver := range c.receivers() {
			if _, err := c.pool.Exec(t.Context(), `truncate idem_events, idem_payloads, payments`); err != nil {
				t.Fatal(err)
			}
			status, answer := c.post(altering(row.alter, receiver), row.header, asaastest.Event(asaas.EventPaymentReceived))
			if err := receiver.work(); err != nil {
				t.Fatal(err)
			}
			if states, _, payments := c.stored(); status != http.StatusOK || !slices.Equal(states, []string{"done"}) || payments != 1 {
				t.Errorf("%s, %s: answered %d %s, stored as %q with %d payments", why, kind, status, answer, states, payments)
			}
		}
	}
}

func TestUnknownEventStaysUnhandled(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	for kind, receiver := range c.receivers() {
		if _, err := c.pool.Exec(t.Context(), `truncate idem_events, idem_payloads`); err != nil {
			t.Fatal(err)
		}
		status, answer := c.post(receiver, nil, []byte(`{"id":"evt_1&1","event":"PAYMENT_NEWS","payment":{}}`))
		if err := receiver.work(); err != nil {
			t.Fatal(err)
		}
		if states, _, _ := c.stored(); status != http.StatusOK || !slices.Equal(states, []string{"unhandled"}) || len(red(receiver.health)) > 0 {
			t.Errorf("%s: answered %d %s, stored as %q", kind, status, answer, states)
		}
	}
}

// A checkout's items have pictures.
func TestCheckoutWithPicturesFits(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	picture := base64.StdEncoding.EncodeToString(make([]byte, 4_000_000))
	body := asaastest.Event(asaas.EventCheckoutPaid)
	body = bytes.ReplaceAll(body, []byte(`"iVBORw0KGgo="`), []byte(`"`+picture+`"`))
	if len(body) < 5<<20 {
		t.Fatalf("the body has %d bytes: the fixture has no picture", len(body))
	}
	for kind, receiver := range c.receivers() {
		if status, answer := c.post(receiver, nil, body); status != http.StatusOK {
			t.Errorf("%s: answered %d %s", kind, status, answer)
		}
	}
}

func TestRefusalsAfterVerificationCountByName(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	event := asaastest.Event(asaas.EventPaymentReceived)
	for why, row := range map[string]struct {
		body   []byte
		status int
		reason string
		hint   string
	}{
		"larger than MaxBody":   {append(bytes.Clone(event), bytes.Repeat([]byte(" "), 2000)...), 413, "body_too_large 5", "the last: the body is larger than 2000 bytes: raise MaxBody"},
		"a withdrawal to judge": {[]byte(`{"type":"TRANSFER","transfer":{"id":"1"}}`), 503, "withdrawal_validation 5", "the last: Asaas asks here whether a withdrawal may be made"},
	} {
		first := idem.NewInbox(c.pool, c.events)
		first.WorkFirst = true
		first.MaxBody, first.Logger = 2000, nil
		h := quietHealth(first)
		for range 5 {
			if status, answer := c.post(first, nil, row.body); status != row.status {
				t.Errorf("%s: answered %d %s, want %d", why, status, answer, row.status)
			}
		}
		if says := red(h)["deliveries"]; !strings.HasPrefix(says, "5 deliveries have failed in a row: "+row.reason) || !strings.Contains(says, row.hint) {
			t.Errorf("%s: health says %q", why, says)
		}
		stranger := altering(func(b []byte) []byte { return b }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set(asaas.TokenHeader, "a guess")
			first.ServeHTTP(w, r)
		}))
		again := idem.NewInbox(c.pool, c.events)
		again.WorkFirst = true
		again.MaxBody, again.Logger = 2000, nil
		first = again
		for range 20 {
			if status, answer := c.post(stranger, nil, row.body); status != http.StatusUnauthorized {
				t.Errorf("%s of a stranger: answered %d %s", why, status, answer)
			}
		}
		if says := red(quietHealth(again)); len(says) > 0 {
			t.Errorf("%s of a stranger: health says %v", why, says)
		}
	}
}
