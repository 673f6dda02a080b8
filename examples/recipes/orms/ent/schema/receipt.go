// Package schema declares the tables of the ent client in this module's tests.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Receipt is money that came for a charge.
type Receipt struct{ ent.Schema }

// Fields returns the columns.
func (Receipt) Fields() []ent.Field {
	return []ent.Field{field.String("charge").Unique(), field.String("value")}
}
