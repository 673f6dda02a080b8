package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

const (
	token    = "whsec-7f0c4b1e9a2d4e6f8b3c5d7e9f1a2b3c"
	oldToken = "whsec-0a1b2c3d4e5f60718293a4b5c6d7e8f9"
)

// sent are the headers of a delivery with tokens, as Asaas has them.
func sent(tokens ...string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Asaas-Access-Token": tokens}
}

func TestOnlyAConfiguredTokenVerifies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		header http.Header
		tokens []string
		want   idem.Reason
		reason string
	}{
		{sent(token), []string{token}, "", "the token"},
		{sent(token), []string{token, oldToken}, "", "the new token during a rotation"},
		{sent(oldToken), []string{token, oldToken}, "", "the old token during a rotation"},
		{sent(token), []string{"", token}, "", "an empty token beside a real one"},
		{sent(token), []string{token, token}, "", "one token twice"},
		{http.Header{"asaas-access-token": {token}}, []string{token}, "", "a header in lower case, from an API gateway"},

		{sent("guess"), []string{token}, provider.ReasonWrongToken, "another token"},
		{sent(strings.ToUpper(token)), []string{token}, provider.ReasonWrongToken, "another case"},
		{sent(token[:len(token)-1]), []string{token}, provider.ReasonWrongToken, "the beginning of the token"},
		{sent(token + "x"), []string{token}, provider.ReasonWrongToken, "the token and more"},
		{sent(token + "\x00"), []string{token}, provider.ReasonWrongToken, "the token and a NUL"},
		{sent(" " + token), []string{token}, provider.ReasonWrongToken, "a space that is not in the token"},
		{sent(token), []string{token + "\n"}, provider.ReasonWrongToken, "a line break in the configuration"},
		{sent(token + ", " + token), []string{token}, provider.ReasonWrongToken, "two headers that a proxy joined"},
		{sent(strings.Repeat("a", 1<<20)), []string{token}, provider.ReasonWrongToken, "a very long token"},

		{sent(), []string{token}, provider.ReasonMissingToken, "no header"},
		{sent(""), []string{token}, provider.ReasonMissingToken, "an empty header"},
		{nil, []string{token}, provider.ReasonMissingToken, "no headers at all"},
		{http.Header{"Authorization": {"Bearer " + token}}, []string{token}, provider.ReasonMissingToken, "another header"},
		{sent(token, token), []string{token}, provider.ReasonSeveralTokens, "the header twice, although both are right"},
		{sent("guess", token), []string{token}, provider.ReasonSeveralTokens, "the header twice"},
		{
			http.Header{"Asaas-Access-Token": {token}, "asaas-access-token": {"guess"}},
			[]string{token},
			provider.ReasonSeveralTokens, "the header in two spellings",
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			if why := reasonOf(t, asaas.Verify(tt.header, []byte(`{}`), tt.tokens...)); why != tt.want {
				t.Errorf("refused as %q, want %q", why, tt.want)
			}
		})
	}
}
