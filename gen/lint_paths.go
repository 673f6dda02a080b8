package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

func (l *linter) checkPaths() {
	paths := l.doc.Paths.Map()
	for _, path := range inOrder(paths, itemOrigin) {
		operations := paths[path].Operations()
		for _, method := range slices.Sorted(keysOf(operations)) {
			l.checkOperation("paths."+path+"."+strings.ToLower(method), operations[method])
		}
	}
}

// checkOperation checks that the types of an operation have a page of the
// documentation, and names. Bodies and answers that are components are checked
// there.
func (l *linter) checkOperation(path string, o *openapi3.Operation) {
	if !hasLink(o.ExternalDocs) {
		l.report(o.Origin, path+".externalDocs.url", noLink)
	}
	if o.RequestBody != nil && o.RequestBody.Ref == "" {
		l.checkContent(o.Origin, path+".requestBody", o.RequestBody.Value.Content)
	}
	for status, answer := range o.Responses.Map() {
		if answer.Ref == "" {
			l.checkContent(o.Origin, path+".responses."+status, answer.Value.Content)
		}
	}
}
