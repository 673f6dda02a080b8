//go:build go1.27 && goexperiment.jsonv2

package scalar

import (
	"encoding/json/jsontext"

	"github.com/paghooks/paghooks/internal/stream"
)

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (d *Decimal) UnmarshalJSONFrom(in *jsontext.Decoder) error { return stream.Into(in, d) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (n *Int) UnmarshalJSONFrom(in *jsontext.Decoder) error { return stream.Into(in, n) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (t *Text) UnmarshalJSONFrom(in *jsontext.Decoder) error { return stream.Into(in, t) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (p *Percent) UnmarshalJSONFrom(in *jsontext.Decoder) error { return stream.Into(in, p) }

// UnmarshalJSONFrom is UnmarshalJSON for Go 1.27 and later.
func (c *Cents) UnmarshalJSONFrom(in *jsontext.Decoder) error { return stream.Into(in, c) }
