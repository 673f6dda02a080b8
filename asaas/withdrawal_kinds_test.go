package asaas

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var capital = regexp.MustCompile("[A-Z]")

// The kinds are those of the generated struct: each but the type is the object of one.
func TestEveryKindOfTheSpecCanBeDecided(t *testing.T) {
	t.Parallel()
	kinds := 0
	for field := range reflect.TypeFor[Withdrawal]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "type" {
			continue
		}
		kinds++
		kind := WithdrawalType(strings.ToUpper(capital.ReplaceAllString(name, "_$0")))
		body := fmt.Appendf(nil, `{"type":%q,%q:{"id":"w1","value":2.5,"totalValue":2.5}}`, kind, name)
		w, err := parseWithdrawal(body)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if two, _ := ParseDecimal("2.5"); w.ID() != "w1" || w.Value() != two || !kind.Known() || !isWithdrawalValidation(body) {
			t.Errorf("%s: its id is %q, its amount %v, it is known: %t", kind, w.ID(), w.Value(), kind.Known())
		}
	}
	if kinds == 0 {
		t.Error("there is no kind")
	}
}
