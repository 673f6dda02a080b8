// Package schema declares the tables of the ent client in this module's tests.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Order is an order of the shop's. Reference is the externalReference of its charges.
type Order struct{ ent.Schema }

// Fields returns the columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{field.String("reference").Unique(), field.Int64("paid_cents").Default(0), field.Int64("settled_cents").Default(0)}
}
