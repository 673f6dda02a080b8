package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/withdrawal"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/internal/testkit"
)

const (
	token    = "whsec-7f0c4b1e9a2d4e6f8b3c5d7e9f1a2b3c"
	oldToken = "whsec-0a1b2c3d4e5f60718293a4b5c6d7e8f9"
)

const event = `{"id":"evt_05b708f961d739ea7eba7e4db318f621&1","event":"PAYMENT_CREATED","payment":{"id":"pay_1"}}`

func sent(tokens ...string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Asaas-Access-Token": tokens}
}

// wantReason checks that err refuses for that reason, "" for no refusal, and
// that it does not give a token away.
func wantReason(t *testing.T, err error, want idem.Reason) {
	t.Helper()
	var refusal *idem.Refusal
	switch {
	case err == nil && want == "":
		return
	case !errors.As(err, &refusal) || refusal.Reason != want || refusal.Source != "asaas" || refusal.Hint == "":
		t.Errorf("got %v, want the reason %q", err, want)
	case strings.Contains(err.Error(), token), strings.Contains(err.Error(), oldToken):
		t.Errorf("the refusal tells a token: %v", err)
	}
}

func TestARefusalTellsWhichMistakeItIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		want   string
		reason string
	}{
		{asaas.Verify(sent(token), []byte(event)), "no token was given", "a constructor without tokens"},
		{asaas.Verify(sent(token), []byte(event), ""), "are empty: is the environment variable set?", "an unset variable"},
		{asaas.Verify(sent(token), []byte(event), token+"\n"), "begins or ends with a space or a line break", "a secret file with a line break"},
		{asaas.Verify(sent(token), []byte(event), oldToken), "not the one configured", "another token"},
	} {
		if !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: got %q, want %q in it", tt.reason, tt.err, tt.want)
		}
	}
}

func TestAFormIsRecognizedFirst(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{
		"application/x-www-form-urlencoded; charset=UTF-8", // as apiVersion 2 sends it
		"application/x-www-form-urlencoded",
		"Application/X-WWW-Form-URLEncoded",
	} {
		header := http.Header{"Content-Type": {contentType}}
		err := asaas.Verify(header, []byte("data=%7B%7D"), token)
		wantReason(t, err, asaas.ReasonFormEncoded)
		if !strings.Contains(err.Error(), "apiVersion 3") {
			t.Errorf("%v does not say what to do", err)
		}
		byHand := sent(token)
		byHand.Set("Content-Type", contentType)
		wantReason(t, asaas.Verify(byHand, []byte(event), token), "") // the body counts
		wantReason(t, asaas.Verify(byHand, []byte(event), oldToken), provider.ReasonWrongToken)
	}
	for _, contentType := range []string{"", "text/plain", "application/json;;", "application/json; charset=utf-8"} {
		header := sent(token)
		header.Set("Content-Type", contentType)
		wantReason(t, asaas.Verify(header, []byte(event), token), "")
	}
}

func TestAWithdrawalValidationIsNoEvent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body   string
		want   idem.Reason
		reason string
	}{
		{`{"type":"TRANSFER","transfer":{"id":"x"}}`, asaas.ReasonWithdrawalValidation, "a transfer"},
		{`{"type":"BILL","bill":{"id":1}}`, asaas.ReasonWithdrawalValidation, "a bill"},
		{`{"type":"PIX_QR_CODE","pixQrCode":{}}`, asaas.ReasonWithdrawalValidation, "a Pix"},
		{`{"type":"MOBILE_PHONE_RECHARGE","mobilePhoneRecharge":{}}`, asaas.ReasonWithdrawalValidation, "a recharge"},
		{`{"pixRefund":{"description":"\"event\""},"type":"PIX_REFUND"}`, asaas.ReasonWithdrawalValidation, "a refund whose text holds the word event"},
		{`{"type":"PAYMENT_SPLIT","paymentSplit":{"id":"x"}}`, asaas.ReasonWithdrawalValidation, "a split"},
		{`{"type":"PAYMENT_SPLIT","paymentSplit":{"event":"x","payment":{"event":"y"}}}`, asaas.ReasonWithdrawalValidation, "a split, whose fields nobody knows"},

		{event, "", "an event"},
		{`{"event":"PAYMENT_SPLIT_DONE","type":"PAYMENT_SPLIT","paymentSplit":{}}`, "", "an event about a split"},
		{`{"event":"TRANSFER_CREATED","type":"TRANSFER","transfer":{}}`, "", "an event about a transfer"},
		{`{"\u0065vent":"TRANSFER_CREATED","type":"TRANSFER","transfer":{}}`, "", "an event in strange letters"},
		{`{"type":"TRANSFER"}`, "", "a type without its object"},
		{`{"type":"TRANSFER","transfer":null}`, "", "a type with nothing"},
		{`{"type":"TRANSFER","bill":{}}`, "", "a type with another's object"},
		{`{"type":"INVOICE","invoice":{}}`, "", "another type"},
		{`{"type":1,"transfer":{}}`, "", "a type that is none"},
		{`{}`, "", "an empty object"},
		{`[]`, "", "no object"},
		{``, "", "nothing"},
		{`{`, "", "no JSON"},
	} {
		wantReason(t, asaas.Verify(sent(token), []byte(tt.body), token), tt.want)
		wantReason(t, asaas.Verify(sent("guess"), []byte(tt.body), token), provider.ReasonWrongToken)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(token, token, "")
	f.Add(token, "", token)
	f.Add("", "", "")
	f.Add(" ", " ", "\n")
	f.Add("é", "é", "\xff")
	f.Fuzz(func(t *testing.T, sentToken, first, second string) {
		err := asaas.Verify(sent(sentToken), []byte(event), first, second)
		genuine := strings.TrimSpace(sentToken) != "" && (sentToken == first || sentToken == second)
		if (err == nil) != genuine {
			t.Errorf("sent %q, configured %q and %q: %v", sentToken, first, second, err)
		}
		var refusal *idem.Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("%v is no refusal", err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	header, body := sent(token), testdata(b, "pix_received_unasked")
	b.ReportAllocs()
	for b.Loop() {
		if err := asaas.Verify(header, body, token, oldToken); err != nil {
			b.Fatal(err)
		}
	}
}

// unread is a body that must not be read.
type unread struct {
	t   *testing.T
	why string
}

func (u unread) Read([]byte) (int, error) {
	u.t.Errorf("%s: the body is read", u.why)
	return 0, io.EOF
}

func (unread) Close() error { return nil }

// What the headers alone show is not genuine costs no memory for its body.
func TestTheBodyOfAStrangersFormOrQuestionIsNotRead(t *testing.T) {
	t.Parallel()
	validator := withdrawal.NewValidator(token, func(context.Context, *asaas.Withdrawal) (withdrawal.Decision, error) {
		return withdrawal.Approve(), nil
	})
	validator.Logger = nil
	for _, header := range []http.Header{sent(), sent("guess")} {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		r := httptest.NewRequest(http.MethodPost, "/", unread{t, "a form"})
		r.Header = header
		if _, err := asaas.NewDispatcher(token).Open(r); !errors.As(err, new(*idem.Refusal)) {
			t.Errorf("a form: Open = %v, want a refusal", err)
		}
		r = httptest.NewRequest(http.MethodPost, "/", unread{t, "a withdrawal"})
		r.Header = header
		w := httptest.NewRecorder()
		validator.ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("the validator answers %d, want 401", w.Code)
		}
	}
}

// newReceiver is a receiver with handlers that must not run.
func newReceiver(t *testing.T, set func(*asaas.Dispatcher)) *idem.Inbox {
	t.Helper()
	pool := testkit.Open(t)
	events := asaas.NewDispatcher(token)
	events.OnUnknown(func(context.Context, pgx.Tx, *asaas.UnknownEvent) error {
		t.Error("a handler of the application ran")
		return nil
	})
	set(events)
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	inbox.Logger = slog.New(slog.DiscardHandler)
	return inbox
}

func TestACanaryIsTakenForGenuineByAReceiverOfAsaas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		set    func(*asaas.Dispatcher)
		token  string
		says   string // "" is all is well
	}{
		{"its token is right", func(*asaas.Dispatcher) {}, token, ""},
		{"its token is wrong", func(*asaas.Dispatcher) {}, "guess", "(wrong_token)"},
		{"it has none", func(*asaas.Dispatcher) {}, "", "(missing_token)"},
		{"the token decides the account", func(d *asaas.Dispatcher) {
			d.Accounts = func(*http.Request) ([]idem.Credentials, error) {
				return []idem.Credentials{{Scope: "shop", Secrets: []string{"the shop's"}}}, nil
			}
		}, "the shop's", ""},
		{"Asaas's addresses only", func(d *asaas.Dispatcher) { d.AllowFrom = asaas.OfficialAddresses() }, token, "(address_not_allowed)"},
		{"Asaas's addresses and its own", func(d *asaas.Dispatcher) {
			d.AllowFrom = append(asaas.OfficialAddresses(), netip.MustParsePrefix("127.0.0.0/8"))
		}, token, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			receiver := newReceiver(t, tt.set)
			server := httptest.NewServer(receiver)
			t.Cleanup(server.Close)
			canary := asaas.NewCanary(server.URL, tt.token)
			canary.Logger = nil
			err := canary.Send(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Send = %v, want %q", err, tt.says)
			}
			if stats, err := receiver.Stats(t.Context()); stats != (idem.Stats{}) || err != nil {
				t.Errorf("something is stored: %+v, %v", stats, err)
			}
		})
	}
}

func TestACanaryIsNotDrift(t *testing.T) {
	t.Parallel()
	var events *asaas.Dispatcher
	server := httptest.NewServer(newReceiver(t, func(d *asaas.Dispatcher) { events = d }))
	t.Cleanup(server.Close)
	if err := asaas.NewCanary(server.URL, token).Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := events.Drift(); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// An event of the module's own goes through the real address, again and again.
func ExampleNewCanary() {
	ctx := context.Background()
	shop := newShop(ctx)
	defer shop.close()
	server := httptest.NewServer(shop.inbox)
	defer server.Close()

	canary := asaas.NewCanary(server.URL, webhookToken) // "https://shop.example/webhooks/asaas"
	canary.Logger = nil
	fmt.Println(canary.Send(ctx))
	health := health.New(shop.inbox, canary)
	_ = canary.Run // by idem.Serve(ctx, server, inbox, canary)

	for _, c := range health.Report().Checks {
		if c.Name == "canary" {
			fmt.Println(c.Source, c.Healthy, c.Says)
		}
	}
	// Output:
	// <nil>
	// asaas true it was handled; it commits nothing, so it does not show that commits wait
}
