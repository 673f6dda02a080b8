package asaas

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/paghooks/paghooks/idem/optional"
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
		w.PaymentSplit = optional.Of(split)
	}
}

func has[T any](_ T, ok bool) bool { return ok }
