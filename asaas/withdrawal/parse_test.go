package withdrawal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/value"
)

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
		w, err := parse(body)
		if err != nil {
			return
		}
		if w.ID() == "" && w.Type != asaas.WithdrawalTypePaymentSplit {
			t.Fatal("it cannot be looked up")
		}
		if asaas.Identify(body).Type != "" {
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
		again, err := parse(kept)
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
func dropRaw(w *asaas.Withdrawal) {
	if split, ok := w.PaymentSplit.Get(); ok {
		split.Raw = nil
		w.PaymentSplit = value.Of(split)
	}
}

var capital = regexp.MustCompile("[A-Z]")

// The kinds are those of the generated struct: each but the type is the object of one.
func TestEveryKindOfTheSpecCanBeDecided(t *testing.T) {
	t.Parallel()
	kinds := 0
	for field := range reflect.TypeFor[asaas.Withdrawal]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "type" {
			continue
		}
		kinds++
		kind := asaas.WithdrawalType(strings.ToUpper(capital.ReplaceAllString(name, "_$0")))
		body := fmt.Appendf(nil, `{"type":%q,%q:{"id":"w1","value":2.5,"totalValue":2.5}}`, kind, name)
		w, err := parse(body)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if two, _ := value.ParseDecimal("2.5"); w.ID() != "w1" || w.Value() != two || !kind.Known() || !isRefusedAsEvent(body) {
			t.Errorf("%s: its id is %q, its amount %v, it is known: %t", kind, w.ID(), w.Value(), kind.Known())
		}
	}
	if kinds == 0 {
		t.Error("there is no kind")
	}
}

// isRefusedAsEvent reports whether a receiver of events says that this is a question.
func isRefusedAsEvent(body []byte) bool {
	refusal, ok := errors.AsType[*idem.Refusal](asaas.Verify(http.Header{asaas.TokenHeader: {"t"}}, body, "t"))
	return ok && refusal.Reason == asaas.ReasonWithdrawalValidation
}
