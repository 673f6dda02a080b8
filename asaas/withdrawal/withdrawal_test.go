package withdrawal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/withdrawal"
)

const (
	transferWithdrawal = `{"type":"TRANSFER","transfer":{"object":"transfer","id":"0c1f","value":22.5,"netValue":22.50,"transferFee":0,
		"dateCreated":"2026-05-27","scheduleDate":"2026-05-27","effectiveDate":null,"confirmedDate":null,"status":"PENDING",
		"type":"BANK_ACCOUNT","operationType":"PIX","failReason":null,"transactionReceiptUrl":null,"description":null,
		"bankAccount":{"bank":{"code":null,"ispb":"00000000","name":null},"accountName":"Ana","ownerName":"Ana","cpfCnpj":"***.111.111-**",
		"agency":"4124","agencyDigit":null,"account":"42142","accountDigit":"1","pixAddressKey":"ana@example.com"}}}`
	billWithdrawal = `{"type":"BILL","bill":{"object":"bill","id":623471,"status":"PENDING","value":20.0,"discount":0,"interest":0,"fine":0,
		"identificationField":"23793381286001234107143000012345890460000002000","dueDate":"2026-01-01","scheduleDate":"2026-01-01","paymentDate":null,
		"fee":0,"description":null,"companyName":null,"transactionReceiptUrl":null,"canBeCancelled":true,"failReasons":null,"bankId":4,
		"awaitingCriticalActionAuthorization":false,"bank":{"object":"bank","id":4,"code":"237","name":"Bank"}}}`
	pixWithdrawal = `{"type":"PIX_QR_CODE","pixQrCode":{"id":"aa10","endToEndIdentifier":"E1","finality":null,"value":2,"changeValue":null,
		"refundedValue":0,"effectiveDate":"2026-07-14 13:04:03","scheduledDate":null,"status":"AWAITING_REQUEST","type":"DEBIT",
		"originType":"STATIC_QRCODE","conciliationIdentifier":null,"description":null,"transactionReceiptUrl":null,"refusalReason":null,
		"canBeCanceled":true,"originalTransaction":null,"externalAccount":{"ispb":18236120,"ispbName":"BANK S.A.","name":"Ana",
		"cpfCnpj":"***.111.111-**","addressKey":"ana@example.com","addressKeyType":"EMAIL"},"qrCode":{"payer":null,
		"conciliationIdentifier":null,"originalValue":1.00,"dueDate":null,"interest":0,"fine":0,"discount":0,"expirationDate":null},"payment":null}}`
	rechargeWithdrawal = `{"type":"MOBILE_PHONE_RECHARGE","mobilePhoneRecharge":{"id":"d29f","value":20,"phoneNumber":"47999999999",
		"status":"PENDING","canBeCancelled":true,"operatorName":"Claro"}}`
	refundWithdrawal = `{"type":"PIX_REFUND","pixRefund":{"id":"0639","transferId":"f395","endToEndIdentifier":null,"finality":null,"value":200,
		"changeValue":null,"refundedValue":0,"dateCreated":"17/12/2026 15:27:42","effectiveDate":"17/12/2026 15:27:42","scheduledDate":null,
		"status":"AWAITING_REQUEST","type":"CREDIT_REFUND","originType":null,"conciliationIdentifier":null,"description":null,
		"transactionReceiptUrl":null,"chargedFeeValue":0,"canBeRefunded":false,"refundDisabledReason":"no","refusalReason":null,
		"canBeCanceled":false,"originalTransaction":{"id":"b985","endToEndIdentifier":"6709","value":1000,"effectiveDate":"17/12/2026 15:26:57"},
		"externalAccount":{"ispb":19540550,"ispbName":"BANK","name":"Ana","agency":"0","account":"0000000","accountDigit":"0",
		"accountType":"CHECKING_ACCOUNT","cpfCnpj":"***.111.111-**","addressKey":null,"addressKeyType":null},"qrCode":null,
		"payment":"pay_e4xn","addressKey":null,"addressKeyType":null,"externalReference":null}}`
	splitWithdrawal = `{"type":"PAYMENT_SPLIT","paymentSplit":{"id":"8f21","walletId":"w1","totalValue":12.5,"status":"DONE","settledAt":"2026-09-28"}}`
)

func TestEveryKindOfWithdrawalReachesTheApplication(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body, id string
		cents    int64
		is       func(*asaas.Withdrawal) bool
		reason   string
	}{
		{transferWithdrawal, "0c1f", 2250, func(w *asaas.Withdrawal) bool {
			tr, ok := w.Transfer.Get()
			to, _ := tr.BankAccount.Get()
			bank, _ := to.Bank.Get()
			return ok && to.PixAddressKey.Or("") == "ana@example.com" && bank.Ispb.Or("") == "00000000"
		}, "a transfer to a Pix key"},
		{`{"type":"TRANSFER","transfer":{"id":"0c1f","value":22.5,"type":"ASAAS_ACCOUNT","walletId":"w1","account":{"name":"Ana","agency":"1"}}}`, "0c1f", 2250, func(w *asaas.Withdrawal) bool {
			tr, _ := w.Transfer.Get()
			to, ok := tr.Account.Get()
			return ok && tr.WalletID.Or("") == "w1" && to.Agency.Or("") == "1"
		}, "a transfer to an Asaas account"},
		{billWithdrawal, "623471", 2000, func(w *asaas.Withdrawal) bool {
			b, ok := w.Bill.Get()
			bank, _ := b.Bank.Get()
			return ok && bank.Code.Or("") == "237" && b.BankID.Or("") == "4" && b.FailReasons.IsNull()
		}, "a bill, whose id is a number"},
		{`{"type":"BILL","bill":{"id":"f2bd","value":"20.00"}}`, "f2bd", 2000, func(w *asaas.Withdrawal) bool {
			_, ok := w.Bill.Get()
			return ok
		}, "a bill, whose id is a text and whose amount too"},
		{pixWithdrawal, "aa10", 200, func(w *asaas.Withdrawal) bool {
			p, ok := w.PixQrCode.Get()
			to, _ := p.ExternalAccount.Get()
			code, _ := p.QrCode.Get()
			return ok && to.Ispb.Or("") == "18236120" && code.OriginalValue.Or(asaas.Money{}) == asaas.Cents(100)
		}, "a Pix, whose bank is a number"},
		{rechargeWithdrawal, "d29f", 2000, func(w *asaas.Withdrawal) bool {
			r, ok := w.MobilePhoneRecharge.Get()
			return ok && r.OperatorName.Or("") == "Claro"
		}, "a recharge"},
		{refundWithdrawal, "0639", 20000, func(w *asaas.Withdrawal) bool {
			p, ok := w.PixRefund.Get()
			of, _ := p.OriginalTransaction.Get()
			at, err := of.EffectiveDate.Or("").Time()
			return ok && err == nil && at.UTC().Format(time.RFC3339) == "2026-12-17T18:26:57Z" && p.Payment.Or("") == "pay_e4xn"
		}, "a refund, whose dates are those of Brazil"},
		{splitWithdrawal, "8f21", 1250, func(w *asaas.Withdrawal) bool {
			s, ok := w.PaymentSplit.Get()
			return ok && s.WalletID.Or("") == "w1" && strings.Contains(string(s.Raw), `"settledAt"`)
		}, "a split"},
		{`{"type":"PAYMENT_SPLIT","paymentSplit":{"splitId":1,"walletId":{},"status":7}}`, "", 0, func(w *asaas.Withdrawal) bool {
			s, ok := w.PaymentSplit.Get()
			return ok && strings.Contains(string(s.Raw), `"splitId":1`)
		}, "a split of fields that nobody foresaw"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			var got asaas.Withdrawal
			v := withdrawal.NewValidator(token, func(_ context.Context, w *asaas.Withdrawal) (withdrawal.Decision, error) {
				got = *w
				return withdrawal.Approve(), nil
			})
			logTo(v)
			if status, answer := ask(t, v, tt.body); status != 200 || answer != `{"status":"APPROVED"}` {
				t.Errorf("the answer is %d %s", status, answer)
			}
			if got.ID() != tt.id || got.Value() != asaas.Cents(tt.cents) || !tt.is(&got) {
				t.Errorf("got %s of %s: %+v", got.ID(), got.Value(), got)
			}
		})
	}
}

func TestNoFieldOfAWithdrawalIsLost(t *testing.T) {
	t.Parallel()
	for _, body := range []string{transferWithdrawal, billWithdrawal, pixWithdrawal, rechargeWithdrawal, refundWithdrawal, splitWithdrawal} {
		var w asaas.Withdrawal
		if err := json.Unmarshal([]byte(body), &w); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		// What is sent as a number and kept as a text.
		sent := strings.NewReplacer(`"id":623471`, `"id":"623471"`, `"bankId":4`, `"bankId":"4"`, `"id":4,`, `"id":"4",`,
			`"ispb":18236120`, `"ispb":"18236120"`, `"ispb":19540550`, `"ispb":"19540550"`).Replace(body)
		if diff := cmp.Diff(treeOf(t, []byte(sent)), treeOf(t, again)); diff != "" {
			t.Errorf("%s (-sent +encoded again):\n%s", w.Type, diff)
		}
	}
}

func treeOf(t *testing.T, data []byte) (tree any) {
	t.Helper()
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func ExampleNewValidator() {
	type payout struct {
		value asaas.Money
		to    string // the Pix key
		id    string // of the transfer that was approved
	}
	// The transfers that the application has asked Asaas for, by the externalReference that it sent: in a program, the rows
	// of a table. They are locked (select … for update) until the id is stored.
	asked := map[string]*payout{"payout-17": {value: asaas.Cents(2200), to: "ana@example.com"}}

	validator := withdrawal.NewValidator("the token set beside the URL", func(_ context.Context, w *asaas.Withdrawal) (withdrawal.Decision, error) {
		transfer, _ := w.Transfer.Get()
		account, _ := transfer.BankAccount.Get()
		p := asked[transfer.ExternalReference.Or("")]
		if p == nil || p.value != w.Value() || account.PixAddressKey.Or("") != p.to {
			return withdrawal.Refuse("not asked for by the application"), nil
		}
		if p.id == "" {
			p.id = transfer.ID
		}
		if transfer.ID == "" || p.id != transfer.ID { // Asaas asks again about the same one
			return withdrawal.Refuse("another transfer has this reference"), nil
		}
		return withdrawal.Approve(), nil
	})

	validator.Logger = nil // the output below is all there is to see

	// http.Handle("POST /webhooks/asaas/withdrawals", validator) takes requests such as these:
	for _, body := range []string{
		`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":22,"externalReference":"payout-17","bankAccount":{"pixAddressKey":"ana@example.com"}}}`,
		`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":22,"externalReference":"payout-17","bankAccount":{"pixAddressKey":"ana@example.com"}}}`,
		`{"type":"TRANSFER","transfer":{"id":"7f31aa02","value":22,"externalReference":"payout-17","bankAccount":{"pixAddressKey":"ana@example.com"}}}`,
		`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":2200,"externalReference":"payout-17","bankAccount":{"pixAddressKey":"ana@example.com"}}}`,
		`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":22,"externalReference":"payout-17","bankAccount":{"pixAddressKey":"eve@example.com"}}}`,
		`{"type":"BILL","bill":{"id":623471,"value":20.00}}`,
	} {
		r := httptest.NewRequest("POST", "/webhooks/asaas/withdrawals", strings.NewReader(body))
		r.Header.Set(asaas.TokenHeader, "the token set beside the URL")
		answer := httptest.NewRecorder()
		validator.ServeHTTP(answer, r)
		fmt.Println(answer.Code, answer.Body)
	}
	// Output:
	// 200 {"status":"APPROVED"}
	// 200 {"status":"APPROVED"}
	// 200 {"status":"REFUSED","refuseReason":"another transfer has this reference"}
	// 200 {"status":"REFUSED","refuseReason":"not asked for by the application"}
	// 200 {"status":"REFUSED","refuseReason":"not asked for by the application"}
	// 200 {"status":"REFUSED","refuseReason":"not asked for by the application"}
}

func ExampleDecision() {
	for _, d := range []withdrawal.Decision{withdrawal.Approve(), withdrawal.Refuse("above the day's limit"), {}} {
		answer, err := json.Marshal(d)
		fmt.Println(d.Approved(), string(answer), err)
	}
	// Output:
	// true {"status":"APPROVED"} <nil>
	// false {"status":"REFUSED","refuseReason":"above the day's limit"} <nil>
	// false {"status":"REFUSED"} <nil>
}
