package idem_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
)

// Nothing that is printed shows a secret, however it is printed.
func TestPrintedCredentialsShowNoSecret(t *testing.T) {
	t.Parallel()
	c := idem.Credentials{Scope: "shop-1", Secrets: []string{"open sesame", "open barley"}}
	type config struct {
		Name     string
		Accounts []idem.Credentials
		Main     *idem.Credentials
	}
	values := []any{c, &c, []idem.Credentials{c}, map[string]idem.Credentials{"a": c}, config{"x", []idem.Credentials{c}, &c}, &config{Main: &c}}
	for _, v := range values {
		var printed []string
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10v"} {
			printed = append(printed, fmt.Sprintf(verb, v))
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var text, jsonLog bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("start", "config", v)
		slog.New(slog.NewJSONHandler(&jsonLog, nil)).Info("start", "config", v)
		printed = append(printed, string(encoded), text.String(), jsonLog.String(), fmt.Sprint(v), fmt.Sprintln(v))
		for _, p := range printed {
			for _, secret := range []string{"sesame", "barley", "736573616d65", "736573616D65", "115 101 115"} {
				if strings.Contains(p, secret) {
					t.Errorf("%T is printed with a secret: %s", v, p)
				}
			}
		}
	}
	if got, want := fmt.Sprintf("%+v", c), `{Scope:"shop-1" Secrets:2 redacted}`; got != want {
		t.Errorf("printed as %s, want %s", got, want)
	}
}
