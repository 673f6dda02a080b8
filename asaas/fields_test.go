package asaas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/value"
)

// parse reads a body of testdata as an event of type E.
func parse[E asaas.Event](t *testing.T, name string) E {
	t.Helper()
	e, err := asaas.Parse(testdata(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return e.(E)
}

func TestABalanceBlockIsFoundUnderBothNames(t *testing.T) {
	t.Parallel()
	documented := parse[*asaas.BalanceEvent](t, "balance_value_blocked").Block()
	announced := parse[*asaas.BalanceEvent](t, "balance_value_unblocked_new_key").Block()
	for _, block := range []asaas.BalanceBlock{documented, announced} {
		if block.Value.Or(asaas.Money{}) != asaas.Cents(15000) {
			t.Errorf("got %+v", block)
		}
	}
	if announced.Type.Or("") != asaas.BalanceBlockTypeContractualEffect || announced.PaymentID.Or("") == "" {
		t.Errorf("got %+v", announced)
	}
	if diff := cmp.Diff(asaas.BalanceBlock{}, new(asaas.BalanceEvent).Block()); diff != "" {
		t.Errorf("an event without a block has one:\n%s", diff)
	}
}

func TestOneAnswerForTwoSpellings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, want, reason string }{
		{`{"limitDate":"2026-08-08"}`, "2026-08-08", "as delivered"},
		{`{"limitedDate":"2026-08-08"}`, "2026-08-08", "as documented"},
		{`{"limitDate":null,"limitedDate":"2026-08-08"}`, "2026-08-08", "one of them is null"},
		{`{"limitDate":"2026-08-08","limitedDate":null}`, "2026-08-08", "the other one is null"},
		{`{"limitDate":"2026-08-08","limitedDate":"2026-08-09"}`, "2026-08-08", "what is delivered counts"},
		{`{"limitDate":null}`, "", "no day"},
		{`{}`, "", "nothing"},
	} {
		var d asaas.Discount
		if err := json.Unmarshal([]byte(tt.body), &d); err != nil {
			t.Fatal(err)
		}
		if got := string(d.LastDay().Or("")); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestSplitsAreFoundUnderBothNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body, reason string
		want         int
	}{
		{`{"split":[{"id":"a"}]}`, "as receivers decode it", 1},
		{`{"splits":[{"id":"a"}]}`, "as requests spell it", 1},
		{`{"split":null,"splits":[{"id":"a"}]}`, "one of them is null", 1},
		{`{"split":[{"id":"a"},{"id":"b"}],"splits":[]}`, "what is delivered counts", 2},
		{`{"split":null}`, "nobody else", 0},
		{`{}`, "nothing", 0},
	} {
		var p asaas.Payment
		if err := json.Unmarshal([]byte(tt.body), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.AllSplits(); len(got) != tt.want || tt.want > 0 && got[0].ID.Or("") != "a" {
			t.Errorf("%s: got %+v, want %d", tt.reason, got, tt.want)
		}
	}
}

func TestAnAccessTokenTellsWhyItIsDisabled(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]asaas.AccessTokenDisabledReason{
		"access_token_disabled":               asaas.AccessTokenDisabledReasonLackOfUse,
		"access_token_disabled_as_documented": asaas.AccessTokenDisabledReasonManual,
	} {
		if got := parse[*asaas.AccessTokenEvent](t, name).AccessToken.WhyDisabled().Or(""); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestDatesOfEveryFamilyAreRead(t *testing.T) {
	t.Parallel()
	day := func(d asaas.Date) string { return at(t, d).Format(time.DateOnly) }
	instant := func(d asaas.DateTime) string { return at(t, d).Format(time.DateTime) }

	subscription := parse[*asaas.SubscriptionEvent](t, "subscription_created_2025").Subscription
	checkout := parse[*asaas.CheckoutEvent](t, "checkout_paid").Checkout.Subscription.Or(asaas.CheckoutSubscription{})
	authorization := parse[*asaas.PixAutomaticAuthorizationEvent](t, "pix_automatic_authorization_created").Authorization
	transfer := parse[*asaas.TransferEvent](t, "transfer_done_pix").Transfer
	block := parse[*asaas.BalanceEvent](t, "balance_value_unblocked_new_key").Block()
	for _, tt := range []struct{ got, want, reason string }{
		{day(subscription.NextDueDate.Or("")), "2025-11-10", "subscriptions until February 2026"},
		{day(checkout.NextDueDate.Or("")), "2026-10-31", "checkouts, as their documentation prints them"},
		{day(authorization.StartDate.Or("")), "2026-09-08", "Pix Automático, as delivered"},
		{instant(authorization.ImmediateQrCode.Or(asaas.PixAutomaticQrCode{}).ExpirationDate.Or("")), "2026-08-03 20:55:10", "its QR code"},
		{instant(transfer.EffectiveDate.Or("")), "2026-09-10 16:45:31", "transfers"},
		{instant(block.Date.Or("")), "2026-09-30 00:00:00", "a day where a time was expected"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.reason, tt.got, tt.want)
		}
	}
}

func at(t *testing.T, d interface{ Time() (time.Time, error) }) time.Time {
	t.Helper()
	got, err := d.Time()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestABillIsFoundByANumberToo(t *testing.T) {
	t.Parallel()
	body := string(testdata(t, "bill_failed"))
	for _, id := range []string{`"f1bce822-6f37-4905-8de8-f1af9f2f4bab"`, `4711`} {
		sent := strings.Replace(body, `"f1bce822-6f37-4905-8de8-f1af9f2f4bab"`, id, 1)
		if got := asaas.Identify([]byte(sent)); got.Key != strings.Trim(id, `"`) {
			t.Errorf("the key of bill %s is %q", id, got.Key)
		}
	}
}

func ExampleBalanceEvent_Block() {
	for _, body := range []string{
		`{"event":"BALANCE_VALUE_BLOCKED","balance":{"value":150.0,"type":"PIX_INFRACTION"}}`,
		`{"event":"BALANCE_VALUE_BLOCKED","balanceData":{"value":150.0,"type":"CONTRACTUAL_EFFECT"}}`,
	} {
		e, _ := asaas.Parse([]byte(body))
		block := e.(*asaas.BalanceEvent).Block()
		fmt.Println(block.Value.Or(asaas.Money{}), block.Type.Or(""))
	}
	// Output:
	// 150.00 PIX_INFRACTION
	// 150.00 CONTRACTUAL_EFFECT
}

func ExampleDiscount_LastDay() {
	for _, body := range []string{`{"limitDate":"2026-08-08"}`, `{"limitedDate":"2026-08-08"}`} {
		var discount asaas.Discount
		_ = json.Unmarshal([]byte(body), &discount)
		fmt.Println(discount.LastDay().Or(""))
	}
	// Output:
	// 2026-08-08
	// 2026-08-08
}

func ExamplePayment_AllSplits() {
	for _, body := range []string{`{"split":[{"walletId":"w1"}]}`, `{"splits":[{"walletId":"w1"}]}`} {
		var payment asaas.Payment
		_ = json.Unmarshal([]byte(body), &payment)
		for _, split := range payment.AllSplits() {
			fmt.Println(split.WalletID.Or(""))
		}
	}
	// Output:
	// w1
	// w1
}

func ExampleCheckoutSplit_Percentage() {
	for _, body := range []string{`{"percentageValue":2.5}`, `{"percentualValue":2.5}`} {
		var split asaas.CheckoutSplit
		_ = json.Unmarshal([]byte(body), &split)
		fmt.Println(split.Percentage().Or(asaas.Percent{}))
	}
	// Output:
	// 2.50
	// 2.50
}

func ExampleAccessToken_WhyDisabled() {
	for _, body := range []string{`{"disabledReason":"LACK_OF_USE"}`, `{"disableReason":"LACK_OF_USE"}`} {
		var key asaas.AccessToken
		_ = json.Unmarshal([]byte(body), &key)
		fmt.Println(key.WhyDisabled().Or("") == asaas.AccessTokenDisabledReasonLackOfUse)
	}
	// Output:
	// true
	// true
}

func TestAdditionalInfoIsReadWhateverItIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason, info     string
		splitID, message string
	}{
		{"the object of PAYMENT_SPLIT_DONE", `{"splitId":"3d9c","walletId":"w1"}`, "3d9c", ""},
		{"a message", `"Ajuste em 2 dias \u00fateis."`, "", "Ajuste em 2 dias úteis."},
		{"an object without a split", `{"message":"x"}`, "", ""},
		{"a split of null", `{"splitId":null}`, "", ""},
		{"a split that is no text", `{"splitId":7}`, "", ""},
		{"a list", `[{"splitId":"x"}]`, "", ""},
		{"a number", `7`, "", ""},
		{"null", `null`, "", ""},
	} {
		body := asaastest.Event("PAYMENT_SPLIT_DONE", asaastest.Set("additionalInfo", json.RawMessage(tt.info)))
		parsed, err := asaas.Parse(body)
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		e := parsed.(*asaas.PaymentEvent)
		message, _ := e.AdditionalInfo.Or(nil).Message()
		if e.SplitID() != tt.splitID || message != tt.message {
			t.Errorf("%s: got the split %q and the message %q, want %q and %q", tt.reason, e.SplitID(), message, tt.splitID, tt.message)
		}
		if asaas.Identify(body).Key != e.Payment.ID || e.Payment.ID == "" {
			t.Errorf("%s: it is about %q, want the charge %q", tt.reason, asaas.Identify(body).Key, e.Payment.ID)
		}
	}
	var absent asaas.AdditionalInfo
	if id, ok := absent.SplitID(); ok || id != "" {
		t.Errorf("nothing has the split %q", id)
	}
}

// Several come of one charge, one for each split.
func ExamplePaymentEvent_SplitID() {
	body := asaastest.Event("PAYMENT_SPLIT_DONE")
	parsed, err := asaas.Parse(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	e := parsed.(*asaas.PaymentEvent)
	for _, split := range e.Payment.AllSplits() {
		if split.ID.Or("") == e.SplitID() {
			fmt.Println(split.TotalValue.Or(asaas.Money{}), "of", e.Payment.ID, "is", split.Status.Or(""))
		}
	}
	// Output: 64.50 of pay_1_a1B2c3D4e5F6g7 is DONE
}

func TestEverySpellingOfAWholeNumberIsRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		literal string
		want    asaas.Int
	}{
		{`0`, 0}, {`0.0`, 0}, {`5.00`, 5}, {`-7`, -7}, {`1e2`, 100}, {`1.5e1`, 15}, {`"5"`, 5}, {`999999999999999999`, 999999999999999999},
	} {
		var got asaas.Int
		if err := json.Unmarshal([]byte(tt.literal), &got); err != nil || got != tt.want {
			t.Errorf("%s: got %d, %v", tt.literal, got, err)
		}
	}
}

func TestWhatIsNoWholeNumberIsRefused(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]string{
		`1.5`:                 "number with a fraction",
		`"0.1"`:               "number with a fraction",
		`1e400`:               "number of more than 18 digits",
		`9223372036854775808`: "number of more than 18 digits",
		`"five"`:              "string that is not a number",
		`false`:               "bool",
	} {
		got := asaas.Int(7)
		err := json.Unmarshal([]byte(literal), &got)
		if err == nil || !strings.Contains(err.Error(), want) || got != 7 {
			t.Errorf("%s: got %d and error %v, want one about a %s", literal, got, err, want)
		}
	}
}

func TestAnErrorInANumberTellsItsPath(t *testing.T) {
	t.Parallel()
	_, err := asaas.Parse([]byte(`{"event":"PAYMENT_OVERDUE","payment":{"id":"pay_1","discount":{"dueDateLimitDays":1.5}}}`))
	var typeError *json.UnmarshalTypeError
	if !errors.As(err, &typeError) || typeError.Field != "payment.discount.dueDateLimitDays" {
		t.Errorf("got %v, want the path payment.discount.dueDateLimitDays", err)
	}
}

// encoding/json never hands these on; somebody else may.
func TestWhatIsNoJSONIsRefused(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{"", "abc", `"`, `"1`, "1\n", "\x00"} {
		var d asaas.Decimal
		var n asaas.Int
		if d.UnmarshalJSON([]byte(literal)) == nil || n.UnmarshalJSON([]byte(literal)) == nil {
			t.Errorf("%q is read as %s and %d", literal, d, n)
		}
	}
}

// decimal is a number that is there.
func decimal(t testing.TB, s string) asaas.Decimal {
	t.Helper()
	d, err := value.ParseDecimal(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
