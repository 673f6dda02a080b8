package asaas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/paghooks/paghooks/asaas"
)

func ExampleNewWithdrawalValidator() {
	// The transfers that the application has asked Asaas for, in a table of its own, by the externalReference that it sent.
	asked := map[string]asaas.Money{"payout-17": asaas.Cents(2200)}

	validator := asaas.NewWithdrawalValidator("the token set beside the URL", func(_ context.Context, w *asaas.Withdrawal) (asaas.Decision, error) {
		transfer, _ := w.Transfer.Get()
		if value, ok := asked[transfer.ExternalReference.Or("")]; ok && value == w.Value() {
			return asaas.Approve(), nil
		}
		return asaas.Refuse("not asked for by the application"), nil
	})

	validator.Logger = nil // the output below is all there is to see

	// http.Handle("POST /webhooks/asaas/withdrawals", validator) takes requests such as these:
	for _, body := range []string{
		`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":22,"operationType":"PIX","externalReference":"payout-17"}}`,
		`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":2200,"operationType":"PIX","externalReference":"payout-17"}}`,
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
	// 200 {"status":"REFUSED","refuseReason":"not asked for by the application"}
	// 200 {"status":"REFUSED","refuseReason":"not asked for by the application"}
}

func ExampleDecision() {
	for _, d := range []asaas.Decision{asaas.Approve(), asaas.Refuse("above the day's limit"), {}} {
		answer, err := json.Marshal(d)
		fmt.Println(d.Approved(), string(answer), err)
	}
	// Output:
	// true {"status":"APPROVED"} <nil>
	// false {"status":"REFUSED","refuseReason":"above the day's limit"} <nil>
	// false {"status":"REFUSED"} <nil>
}

func ExampleWithdrawal() {
	var w asaas.Withdrawal
	if err := json.Unmarshal([]byte(`{"type":"TRANSFER","transfer":{"id":"0bed986c","value":22,"bankAccount":{"pixAddressKey":"shop@example.com"}}}`), &w); err != nil {
		fmt.Println(err)
	}
	if transfer, ok := w.Transfer.Get(); ok {
		to, _ := transfer.BankAccount.Get()
		fmt.Println(w.Type, w.Value(), "to", to.PixAddressKey.Or("an account"))
	}
	// Output: TRANSFER 22.00 to shop@example.com
}
