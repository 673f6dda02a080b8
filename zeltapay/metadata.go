package zeltapay

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
)

// Metadata holds the values that the merchant attached to a payment link: at most 20 keys
// with a string, a number, a boolean or null each. The values are kept as the
// JSON that was sent, so that no number loses a digit on the way.
//
//	id, ok := metadata.String("orderId")
//
// Any of them may be about a person, so fmt and slog show only the number of keys. json.Marshal writes all.
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

// Format implements [fmt.Formatter]: every verb shows the number of fields.
func (m Metadata) Format(f fmt.State, _ rune) {
	for name := range m.redacted() {
		fmt.Fprint(f, name)
	}
}

// LogValue implements [slog.LogValuer], and shows no more.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(m)) }

// redacted returns the number of fields as the name of one without a value. No JSON has such a
// value: null is one.
func (m Metadata) redacted() Metadata {
	for _, raw := range m {
		if raw == nil && len(m) == 1 {
			return m // it is redacted
		}
	}
	return Metadata{fmt.Sprintf("[%d fields]", len(m)): nil}
}
