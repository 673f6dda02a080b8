package scalar

import "encoding/json"

// Text is a text that a provider sometimes sends as a number: the id of a bill, the
// number of a bank. It decodes from both, and keeps a number as it was written.
// Zeros in front are gone from a text that was sent as a number.
type Text string

// UnmarshalJSON reads a JSON string or a number. null changes nothing.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && (data[0] == '-' || isDigit(data[0])) && json.Valid(data) {
		*t = Text(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}
