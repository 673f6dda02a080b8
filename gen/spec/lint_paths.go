package spec

import (
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// checkPaths checks the operations that become methods of the client, and its types. Bodies and
// answers that are components are checked there.
func (l *linter) checkPaths() {
	for _, o := range l.Operations() {
		path := "paths." + o.Path + "." + strings.ToLower(o.Method)
		l.checkCall(path, o)
		if o.RequestBody != nil && o.RequestBody.Ref == "" && !TakesEmptyObject(o.Operation) {
			l.checkContent(o.Origin, path+".requestBody", o.RequestBody.Value.Content)
		}
		for status, answer := range o.Responses.Map() {
			if answer.Ref == "" {
				l.checkContent(o.Origin, path+".responses."+status, answer.Value.Content)
			}
		}
	}
}

var pathParameter = regexp.MustCompile(`\{[^}]*}`)

func (l *linter) checkCall(path string, o Operation) {
	first, _ := utf8.DecodeRuneInString(o.OperationID)
	if !token.IsIdentifier(o.OperationID) || !unicode.IsLower(first) {
		l.report(o.Origin, path+".operationId", "%q is not the name of a method; write one such as getOrder", o.OperationID)
	}
	if !strings.HasSuffix(o.Summary, ".") || strings.Contains(o.Summary, "\n") {
		l.warn(o.Origin, path+".summary", "it is not a sentence in one line; write one such as: Shows an order.")
	}
	if !hasLink(o.ExternalDocs) {
		l.warn(o.Origin, path+".externalDocs.url", noLink)
	}
	if in := pathParameter.FindAllString(o.Path, -1); len(in) > 1 || len(in) == 1 && in[0] != "{id}" {
		l.report(o.Origin, path, "the client knows one parameter in a path; name it {id}")
	}
	for _, p := range o.Query {
		if QueryType(p) == "" || !token.IsIdentifier(ParameterName(p)) {
			l.report(o.Origin, path+".parameters."+p.Name, "it is not an integer or a string with a name of Go; write its type, or leave it out")
		}
	}
	answers := slices.Collect(keysOf(o.Responses.Map()))
	successes := slices.DeleteFunc(answers, func(status string) bool { return status[0] != '2' })
	if len(successes) != 1 || (o.Answer() == nil) != (successes[0] == "204") {
		l.report(o.Origin, path+".responses", "there is not one success; write one, with JSON, or 204 without")
	}
}

// QueryType is the Go type of a parameter in a query.
func QueryType(p *openapi3.Parameter) string {
	if p.Schema == nil {
		return ""
	}
	return map[string]string{"integer": "int", "string": "string"}[TypeOf(p.Schema.Value)]
}

// ParameterName is the Go name of a parameter in a query: dueDate[ge] becomes
// dueDateGe.
func ParameterName(p *openapi3.Parameter) string {
	if name, bound, ok := strings.Cut(strings.TrimSuffix(p.Name, "]"), "["); ok && bound != "" {
		return name + GoName(bound)
	}
	return p.Name
}

// TakesEmptyObject reports whether an operation takes an object without properties,
// which needs no name in Go.
func TakesEmptyObject(o *openapi3.Operation) bool {
	body := BodySchema(o)
	return body != nil && body.Ref == "" && TypeOf(body.Value) == "object" && len(body.Value.Properties) == 0
}
