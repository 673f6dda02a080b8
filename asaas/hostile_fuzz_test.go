package asaas_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// A request opens an event only with the one token, in one header, and the event
// is what its body alone says. What is refused is refused for a reason.
func FuzzOpen(f *testing.F) {
	f.Add("Asaas-Access-Token", token, "X", "", "application/json", []byte(event))
	f.Add("asaas-access-token", token, "ASAAS-ACCESS-TOKEN", token, "", []byte(event))
	f.Add("asaas-access-token", " "+token, "asaas_access_token", token, "application/x-www-form-urlencoded; x", []byte(`{}`))
	f.Add("Asaas-Access-Token", token, "", "", `application/x-www-form-urlencoded; a="`, []byte(`{"type":"TRANSFER","transfer":{}}`))
	f.Add("X", token, "Asaas-Access-Token", oldToken, "", []byte("{\"event\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, name, value, otherName, otherValue, contentType string, body []byte) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Content-Type"] = []string{contentType}
		r.Header[name] = append(r.Header[name], value)
		r.Header[otherName] = append(r.Header[otherName], otherValue)
		sent := 0
		right := false
		for n, values := range r.Header {
			if strings.EqualFold(n, asaas.TokenHeader) {
				sent += len(values)
				right = right || values[0] == token
			}
		}
		e, err := asaas.NewDispatcher(token).Open(withBody(r, body))
		if err != nil {
			var refusal *idem.Refusal
			if !errors.As(err, &refusal) || refusal.Reason == asaas.ReasonNotConfigured {
				t.Errorf("it is refused for %v", err)
			}
			if diff := cmp.Diff(idem.Event{}, e); diff != "" {
				t.Errorf("it is refused, and yet an event:\n%s", diff)
			}
			return
		}
		if sent != 1 || !right {
			t.Errorf("%q is opened with %d tokens, right: %t", body, sent, right)
		}
		if diff := cmp.Diff(asaas.Identify(body), e); diff != "" {
			t.Errorf("what is opened is not what the body says:\n%s", diff)
		}
	})
}

// What decodes can be kept and decoded again, and is still the same.
func FuzzParse(f *testing.F) {
	for _, name := range bodies {
		f.Add(testdata(f, name))
	}
	for _, body := range []string{
		`{"event":"NEWS","x":[1,{"y":null}]}`, `{"event":"PAYMENT_CREATED","payment":{"value":1.10,"dueDate":"","split":[]}}`,
		`{"event":"PAYMENT_CREATED","PAYMENT":{"id":"\u0000\ud800"},"payment":null}`, `{"event":"BILL_PAID","bill":{"value":"1,5"}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := asaas.Parse(body)
		if err != nil {
			if e != nil || !strings.HasPrefix(err.Error(), "asaas: ") {
				t.Errorf("%q: %v, %v", body, e, err)
			}
			return
		}
		once := kept(t, e)
		again, err := asaas.Parse(once)
		if err != nil {
			t.Fatalf("%q is kept as %s, which does not decode: %v", body, once, err)
		}
		if twice := kept(t, again); string(once) != string(twice) {
			t.Errorf("kept once:\n%s\nand twice:\n%s", once, twice)
		}
	})
}

func kept(t *testing.T, e asaas.Event) []byte {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Nobody passes for Asaas by what is in front of the address that the nearest
// proxy wrote.
func FuzzSendersAddress(f *testing.F) {
	f.Add("52.67.12.206", "203.0.113.9")
	f.Add("52.67.12.206, ", "[2001:db8::1]:80")
	f.Add("x", "::ffff:203.0.113.9%eth0")
	f.Add("", "52.67.12.207:1")
	f.Fuzz(func(t *testing.T, written, last string) {
		d := asaas.NewDispatcher(token)
		d.AllowFrom, d.ClientAddrHeader = asaas.OfficialAddresses(), "X-Forwarded-For"
		if strings.Contains(last, ",") {
			return
		}
		bare := strings.Trim(strings.TrimSpace(last), "[]")
		address, err := netip.ParseAddr(bare)
		if withPort, e := netip.ParseAddrPort(strings.TrimSpace(last)); e == nil {
			address, err = withPort.Addr(), nil
		}
		official := false
		for _, p := range asaas.OfficialAddresses() {
			official = official || err == nil && p.Contains(address.Unmap().WithZone(""))
		}
		for _, lines := range [][]string{{written + "," + last}, {written, last}, {last}} {
			r := httptest.NewRequest("POST", "/", nil)
			r.RemoteAddr = "52.67.12.206:443" // the proxy's, which does not count
			r.Header["X-Forwarded-For"] = lines
			r.Header.Set(asaas.TokenHeader, token)
			if _, err := d.Open(withBody(r, []byte(event))); (err == nil) != official {
				t.Errorf("%q, official: %t: %v", lines, official, err)
			}
		}
	})
}
