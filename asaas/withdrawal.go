package asaas

import (
	"bytes"
	"encoding/json"
)

// isWithdrawalValidation recognises the request of Asaas's other webhook, which
// is not an event and whose answer must hold a decision:
// https://docs.asaas.com/docs/mecanismo-para-validacao-de-saque-via-webhooks.
func isWithdrawalValidation(body []byte) bool {
	if bytes.Contains(body, []byte(`"event"`)) {
		return false // spares every ordinary event the parsing
	}
	var request struct {
		Event               json.RawMessage
		Type                string
		Transfer            json.RawMessage
		Bill                json.RawMessage
		PixQRCode           json.RawMessage
		MobilePhoneRecharge json.RawMessage
		PixRefund           json.RawMessage
	}
	if json.Unmarshal(body, &request) != nil || request.Event != nil {
		return false
	}
	subject, ok := map[string]json.RawMessage{
		"TRANSFER":              request.Transfer,
		"BILL":                  request.Bill,
		"PIX_QR_CODE":           request.PixQRCode,
		"MOBILE_PHONE_RECHARGE": request.MobilePhoneRecharge,
		"PIX_REFUND":            request.PixRefund,
	}[request.Type]
	return ok && bytes.HasPrefix(subject, []byte("{"))
}
