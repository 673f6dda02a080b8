package upstream

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/paghooks/paghooks/gen/spec"
)

// Report prints how the provider's own document differs from the spec, and returns in
// how many ways. source is its address; "" for that of the spec's x-upstream.
func Report(ctx context.Context, w io.Writer, s *spec.Spec, source string) (differences int, err error) {
	return watch{newFetcher()}.report(ctx, w, s, source)
}

// watch compares a spec with a document.
type watch struct{ fetcher fetcher }

func (u watch) report(ctx context.Context, w io.Writer, s *spec.Spec, source string) (int, error) {
	lines, err := u.compare(ctx, s, source)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	return len(lines), err
}

func (u watch) compare(ctx context.Context, s *spec.Spec, source string) ([]string, error) {
	if err := s.Lint(); err != nil {
		return nil, err
	}
	if source = cmp.Or(source, s.Upstream.Document); source == "" {
		return nil, fmt.Errorf("gen: %s names no document to compare it with: give its address, or write x-upstream: {document: https://…}", s.Name)
	}
	data, err := u.fetcher.read(ctx, source)
	if err != nil {
		return nil, err
	}
	doc, err := parseOfficial(data, s.Upstream.Events)
	if err != nil {
		return nil, fmt.Errorf("gen: %s: %w", source, err)
	}
	return compareTo(s, doc)
}

// counterparts are the document's names of our schemas. The objects inside are
// found through them.
func counterparts(s *spec.Spec, o *official) map[string]spec.Paths {
	if s.Upstream.Schemas != nil {
		return s.Upstream.Schemas
	}
	same := make(map[string]spec.Paths)
	for name := range s.Schemas() {
		if o.schemas[name] != nil {
			same[name] = spec.Paths{name}
		}
	}
	return same
}
