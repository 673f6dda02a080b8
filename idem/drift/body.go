package drift

import (
	"bytes"
	"encoding/json"
	"strings"
)

// read decodes a body without losing a digit.
func read(body []byte) (v any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	err = decoder.Decode(&v)
	return v, err
}

// lookUp finds a field as encoding/json does: by its name, or else in another
// case.
func lookUp(object map[string]any, name string) (v any, ok bool) {
	if v, ok = object[name]; ok {
		return v, true
	}
	for sent, v := range object {
		if strings.EqualFold(sent, name) {
			return v, true
		}
	}
	return nil, false
}
