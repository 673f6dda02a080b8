package asaas_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
)

// bodies are the names of the bodies in testdata.
var bodies = []string{
	"pix_received_unasked", "card_confirmed_installment", "boleto_overdue", "pix_refunded",
	"chargeback_requested", "split_cancelled", "split_done", "subscription_split_blocked", "deleted", "partially_refunded_with_split",
	"subscription_split_disabled", "subscription_created_2025", "invoice_authorized",
	"transfer_done_pix", "transfer_created_internal", "bill_failed", "anticipation_credited",
	"mobile_phone_recharge_confirmed", "account_status_commercial_info_expired", "checkout_paid",
	"balance_value_blocked", "balance_value_unblocked_new_key", "internal_transfer_debit",
	"access_token_disabled", "access_token_disabled_as_documented", "pix_automatic_authorization_created",
	"pix_automatic_instruction_refused", "pix_automatic_eligibility_updated",
}

// news are the fields in testdata that this package does not know.
var news = []string{"payment.antifraud", "payment.split.1.taxes"}

func TestNoKnownFieldIsLost(t *testing.T) {
	t.Parallel()
	for _, name := range bodies {
		body := testdata(t, name)
		e, err := asaas.Parse(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want, got := leaves(t, body), leaves(t, written)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-sent +written back):\n%s", name, diff)
		}
	}
}

// leaves maps the path of every value in a body to the value: numbers by what
// they are worth, everything else as it is. News are left out.
func leaves(t *testing.T, body []byte) map[string]string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	walk("", v, out)
	return out
}

func walk(path string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		out[path] = "object"
		for name, field := range v {
			if at := join(path, name); !slices.Contains(news, at) {
				walk(at, field, out)
			}
		}
	case []any:
		out[path] = "list"
		for i, element := range v {
			walk(join(path, fmt.Sprint(i)), element, out)
		}
	case json.Number:
		worth, _ := new(big.Rat).SetString(v.String())
		out[path] = worth.RatString()
	default:
		out[path] = fmt.Sprintf("%#v", v)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
