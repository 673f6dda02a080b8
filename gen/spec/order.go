package spec

import (
	"cmp"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// InOrder lists the keys of m as they stand in the file. kin-openapi keeps
// maps, so the order is read from the positions that it recorded.
func InOrder[V any](m map[string]V, origin func(V) *openapi3.Origin) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(Position(origin(m[a])), Position(origin(m[b]))), cmp.Compare(a, b))
	})
}

// Position grows through the file.
func Position(o *openapi3.Origin) int {
	if o == nil || o.Key == nil {
		return 0
	}
	return o.Key.Line<<16 + o.Key.Column
}

func line(o *openapi3.Origin) int { return Position(o) >> 16 }

// SchemaOrigin returns the place of a schema, or of the reference to it, in the file.
func SchemaOrigin(s *openapi3.SchemaRef) *openapi3.Origin {
	if s.Origin == nil && s.Value != nil {
		return s.Value.Origin
	}
	return s.Origin
}

// ItemOrigin returns the place of a webhook or a path in the file.
func ItemOrigin(p *openapi3.PathItem) *openapi3.Origin { return p.Origin }

func bodyOrigin(b *openapi3.RequestBodyRef) *openapi3.Origin {
	if b.Origin == nil && b.Value != nil {
		return b.Value.Origin
	}
	return b.Origin
}

func operationOrigin(o *openapi3.Operation) *openapi3.Origin { return o.Origin }
