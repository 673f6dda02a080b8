package asaas_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas"
)

// A field by which anybody on call finds events must not be about a person.
func TestSearchFieldsAreInTheSpecAndNoneIsPersonal(t *testing.T) {
	t.Parallel()
	spec, err := os.ReadFile("../spec/asaas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	property := regexp.MustCompile(`(?m)^( +)([A-Za-z]+):\n((?:[^\n]*\n){4})`)
	found := map[string]bool{}
	for n := 0; n < len(spec); {
		m := property.FindSubmatchIndex(spec[n:])
		if m == nil {
			break
		}
		name, indent, rest := string(spec[n+m[4]:n+m[5]]), string(spec[n+m[2]:n+m[3]]), string(spec[n+m[6]:n+m[7]])
		n += m[5]
		if !slices.Contains(asaas.SearchFields, name) {
			continue
		}
		if strings.Contains(rest, "type: string") || strings.Contains(rest, `type: [string, "null"]`) {
			found[name] = true
		}
		for line := range strings.SplitSeq(rest, "\n") {
			if !strings.HasPrefix(line, indent+" ") {
				break
			}
			if strings.Contains(line, "x-personal") {
				t.Errorf("%s is personal", name)
			}
		}
	}
	for _, name := range asaas.SearchFields {
		if !found[name] {
			t.Errorf("no text of the spec is named %s", name)
		}
	}
	if !regexp.MustCompile(`(?m)^ +name:\n +x-personal: true`).Match(spec) {
		t.Error("the spec marks nothing as personal as this test reads it: this proves nothing")
	}
}
