//go:build go1.27 && goexperiment.jsonv2

package zeltapay

import (
	"encoding/json/jsontext"

	"github.com/paghooks/paghooks/internal/stream"
)

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (c *Cents) UnmarshalJSONFrom(in *jsontext.Decoder) error { return stream.Into(in, c) }
