package main

import (
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
)

// alias is another name that an event type comes by.
type alias struct {
	Alias string // PHONE_RECHARGE_CONFIRMED
	Name  string // MobilePhoneRechargeConfirmed
}

// aliases lists them in the order of the spec.
func (s *spec) aliases() []alias {
	var out []alias
	for _, name := range inOrder(s.doc.Webhooks, itemOrigin) {
		others, _ := aliasesOf(s.doc.Webhooks[name].Post)
		for _, other := range others {
			out = append(out, alias{other, goName(name)})
		}
	}
	return out
}

// aliasesOf reads x-aliases.
func aliasesOf(post *openapi3.Operation) ([]string, error) {
	value, ok := post.Extensions[aliasesName]
	if !ok {
		return nil, nil
	}
	names, ok := stringsOf(value)
	if !ok {
		return nil, fmt.Errorf("%s is not a list of names; write [OTHER_NAME], for example", aliasesName)
	}
	return names, nil
}
