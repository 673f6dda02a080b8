package asaas

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/paghooks/paghooks/idem/value"
)

// Whatever is answered, the error is short, on one line, without secrets, and
// tells one outcome, which never takes a change that may have been done for one
// that was not.
func FuzzErrorOfAnyAnswer(f *testing.F) {
	const key, token = "$aact_prod_000SECRET", "the-TOKEN-of-the-webhook"
	for _, seed := range []struct {
		status int
		body   string
	}{
		{400, `{"errors":[{"code":"invalid_value","description":"O campo value deve ser informado"}]}`},
		{401, `{"errors":[{"code":"invalid_access_token","description":"A chave ` + key + ` é inválida"}]}`},
		{401, `{"errors":[{"code":"\u0024aact_prod_000SECRET","description":"%24aact_prod_000SECRET"}]}`},
		{400, `{"errors":[{"description":"the-TOKEN-of-the-webhook\u0000"},{},null,{"code":null}]}`},
		{400, `{"errors":[{"description":"$aact_$aact_prod_000SECRET"}]}`},
		{400, `{"errors":{}}`},
		{403, `<html>`},
		{404, ``},
		{429, `[]`},
		{500, `{"errors":[{"code":1}]}`},
		{307, `null`},
		{200, `{"id":"a"}`},
		{200, `{"errors":`},
	} {
		f.Add(seed.status, seed.body, "30")
	}
	f.Fuzz(func(t *testing.T, status int, body, reset string) {
		a := answered{status: status, header: http.Header{"Ratelimit-Reset": {reset}}, body: []byte(body)}
		c := &Client{key: func() string { return key }}
		e := c.judge(operation{name: "CreateWebhook", method: http.MethodPost, token: token}, a, new(Webhook))
		if e == nil {
			return
		}
		said := fmt.Sprintf("%v %+v", e, e.Errors)
		if strings.Contains(said, key) || strings.Contains(said, token) {
			t.Errorf("there is a secret: %q", said)
		}
		if len(said) > 20_000 || !utf8.ValidString(said) || strings.ContainsFunc(said, unicode.IsControl) {
			t.Errorf("it is no line: %q", said)
		}
		if (e.Outcome == CallNotDelivered) != (status == http.StatusTooManyRequests) || e.Outcome == "" {
			t.Errorf("status %d is %s", status, e.Outcome)
		}
		if e.Outcome == CallRejected && (status/100 == 2 || status >= 500) {
			t.Errorf("status %d is %s", status, e.Outcome)
		}
		if e.RetryAfter < 0 || e.Status != status {
			t.Errorf("got %+v", e)
		}
	})
}

// What is asked about is one withdrawal of a kind that is known, that can be
// looked up; and it is the same one when it is kept and read again.
func FuzzParseWithdrawal(f *testing.F) {
	for _, body := range []string{
		`{"type":"TRANSFER","transfer":{"id":"1","value":22.5,"bankAccount":{"bank":{"ispb":"00000000"}}}}`,
		`{"type":"BILL","bill":{"id":623471,"value":20.0,"failReasons":["a"],"bank":{"id":4}}}`,
		`{"type":"PIX_QR_CODE","pixQrCode":{"id":"1","value":2,"externalAccount":{"ispb":18236120},"qrCode":{"payer":null}}}`,
		`{"type":"MOBILE_PHONE_RECHARGE","mobilePhoneRecharge":{"id":"1","value":20,"phoneNumber":47999999999}}`,
		`{"type":"PIX_REFUND","pixRefund":{"id":"1","value":200,"dateCreated":"17/12/2024 15:27:42","originalTransaction":{"value":1000}}}`,
		`{"type":"PAYMENT_SPLIT","paymentSplit":{"id":"1","walletId":"w","totalValue":10,"payment":{"id":"pay_1"}}}`,
		`{"type":"PAYMENT_SPLIT","paymentSplit":{"id":1}}`,
		`{"type":"TRANSFER","transfer":{"id":"1"},"bill":{"id":2}}`,
		`{"id":"evt_1","event":"PAYMENT_CREATED","type":"TRANSFER","transfer":{"id":"1"}}`,
		`{"type":"TRANSFER","Transfer":{"id":"1"},"transfer":null}`,
		`null`, `[]`, `{"type":1}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w, err := parseWithdrawal(body)
		if err != nil {
			return
		}
		if w.ID() == "" && w.Type != WithdrawalTypePaymentSplit {
			t.Fatal("it cannot be looked up")
		}
		if Identify(body).Type != "" {
			t.Fatal("it is an event")
		}
		objects := 0
		for _, isThere := range []bool{has(w.Transfer.Get()), has(w.Bill.Get()), has(w.PixQrCode.Get()), has(w.MobilePhoneRecharge.Get()), has(w.PixRefund.Get()), has(w.PaymentSplit.Get())} {
			if isThere {
				objects++
			}
		}
		if objects != 1 {
			t.Fatalf("it has %d objects", objects)
		}
		kept, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseWithdrawal(kept)
		if err == nil {
			dropRaw(w)
			dropRaw(again)
		}
		if err != nil || !reflect.DeepEqual(w, again) {
			t.Fatalf("kept as %s it is another: %+v, %v", kept, again, err)
		}
	})
}

// dropRaw drops what json.Marshal compacts.
func dropRaw(w *Withdrawal) {
	if split, ok := w.PaymentSplit.Get(); ok {
		split.Raw = nil
		w.PaymentSplit = value.Of(split)
	}
}

func has[T any](_ T, ok bool) bool { return ok }
