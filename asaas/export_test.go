package asaas

import (
	"encoding/json"
	"strings"
)

// KeyOf is the key of an event that is decoded, as its JSON has it when it is encoded
// again.
func KeyOf(e Event) string {
	var text string
	for _, path := range definition.Naming.Events[string(canonical(e.envelope().Event))].Key {
		at, _ := json.Marshal(e)
		for name := range strings.SplitSeq(strings.TrimSuffix(path, "#"), ".") {
			var object map[string]json.RawMessage
			_ = json.Unmarshal(at, &object)
			at = object[name]
		}
		_ = json.Unmarshal(at, &text)
	}
	return text
}
