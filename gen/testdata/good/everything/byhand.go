package everything

import "github.com/paghooks/paghooks/idem/value"

type (
	Money    = value.Decimal
	DateTime = value.Time
	Cents    = value.Cents
	Int      = value.Int
	Metadata = map[string]any
)
