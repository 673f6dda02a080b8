package asaas

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
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
