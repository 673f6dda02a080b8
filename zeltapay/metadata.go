package zeltapay

import (
	"database/sql/driver"
	"encoding/json"
)

// Metadata holds the values that the merchant attached to a payment link: at most 20 keys
// with a string, a number, a boolean or null each. The values are kept as the
// JSON that was sent, so that no number loses a digit on the way.
//
//	id, ok := metadata.String("orderId")
//
// It is a good argument of tx.Exec for a column of type json, jsonb or text.
type Metadata map[string]json.RawMessage

// String returns a key's value as text: a string as it is, a number or a
// boolean as it was written, 1001 or true. ok is false when the key is absent,
// null, or something that Zelta Pay does not document.
func (m Metadata) String(key string) (s string, ok bool) {
	raw := m[key]
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case 'n', '{', '[':
		return "", false
	case '"':
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	}
	return string(raw), true
}

// Value implements [driver.Valuer].
func (m Metadata) Value() (driver.Value, error) {
	if m == nil {
		return nil, nil
	}
	data, err := json.Marshal(m)
	return string(data), err
}
