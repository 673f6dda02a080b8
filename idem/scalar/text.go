package scalar

import (
	"encoding/json"
)

// Int is a whole number. It decodes from every spelling of one: 5, 5.00, 0.0,
// 1e2, "5". A number with a fraction is an error.
type Int int64

// UnmarshalJSON reads a JSON number, or one inside a string. null changes
// nothing.
func (n *Int) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	d, err := parseDecimal(unquoted(data))
	if err == nil && d.scale > 0 {
		err = errFraction
	}
	if err != nil {
		return cannotDecode[Int](data, err)
	}
	*n = Int(d.coef)
	return nil
}

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
