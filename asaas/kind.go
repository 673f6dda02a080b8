package asaas

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// kind is what is known of an event type before a body is decoded.
type kind struct {
	empty   Event // its struct, without anything in it; never written to
	named   Event // its struct, with the key only
	fields  []string
	subject string // the object whose id is the key; "" if there is none
}

// kinds has every event type of newEvent. The generated key methods say what
// the subject is.
var kinds = sync.OnceValue(func() map[EventType]kind {
	all := make(map[EventType]kind, len(newEvent))
	for t, create := range newEvent {
		k := kind{empty: create(), named: create()}
		for field := range reflect.TypeOf(k.empty).Elem().Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				k.fields = append(k.fields, name)
			}
		}
		for _, name := range k.fields {
			e := create()
			if json.Unmarshal(fmt.Appendf(nil, `{%q:{"id":"x"}}`, name), e) == nil && e.key() == "x" {
				k.named, k.subject = e, name
			}
		}
		all[t] = k
	}
	return all
})
