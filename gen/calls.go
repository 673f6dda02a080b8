package main

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/paghooks/paghooks/gen/spec"
)

//go:embed templates/calls.tmpl
var callsTemplate string

// call is a method of the client that does one operation.
type call struct {
	Name, Summary, URL string
	Parameters         string   // caller, id string, body WebhookUpdate
	Query              []string // its parameters, where they are too many for the method's
	Fields             string   // of the operation struct
	Answer             string   // Webhook; "" if there is none
}

func (p provider) callsCode() (string, error) {
	var calls []call
	for _, o := range p.Operations() {
		calls = append(calls, newCall(o))
	}
	return executed("calls", callsTemplate, calls)
}

// maxQuery is the number of parameters of a query that a method takes one by one: of more
// texts in a row two are easily swapped.
const maxQuery = 4

func newCall(o spec.Operation) call {
	parameters := []string{"caller string"}
	fields := []string{"name: caller", "method: http.Method" + spec.GoName(o.Method), "path: " + strconv.Quote(o.Path)}
	if o.HasID() {
		parameters = append(parameters, "id string")
		fields = append(fields, "id: id")
	}
	var query, fieldsOf []string
	for _, p := range o.Query {
		value, kind := spec.ParameterName(p), " "+spec.QueryType(p)
		if len(o.Query) <= maxQuery {
			parameters = append(parameters, value+kind)
		} else {
			fieldsOf = append(fieldsOf, spec.GoName(value)+kind)
			value = "query." + spec.GoName(value)
		}
		if spec.QueryType(p) == "int" {
			value = "strconv.Itoa(" + value + ")"
		}
		query = append(query, strconv.Quote(p.Name)+": {"+value+"}")
	}
	if fieldsOf != nil {
		parameters = append(parameters, "query "+o.OperationID+"Query")
	}
	if query != nil {
		fields = append(fields, "query: url.Values{"+inLines(query, 60)+"}")
	}
	if body := spec.BodySchema(o.Operation); spec.TakesEmptyObject(o.Operation) {
		fields = append(fields, "body: struct{}{}")
	} else if body != nil {
		parameters = append(parameters, "body "+spec.SchemaName(body.Ref))
		fields = append(fields, "body: body")
	}
	c := call{Name: o.OperationID, Summary: o.Summary, URL: pageOf(o), Parameters: grouped(parameters), Query: fieldsOf, Fields: inLines(fields, 100)}
	if answer := o.Answer(); answer != nil {
		c.Answer = spec.SchemaName(answer.Ref)
	}
	return c
}

func pageOf(o spec.Operation) string {
	if o.ExternalDocs == nil {
		return ""
	}
	return o.ExternalDocs.URL
}

// grouped joins parameters as gofmt's authors write them: a, b string, c int.
func grouped(parameters []string) string {
	for i := range len(parameters) - 1 {
		name, kind, _ := strings.Cut(parameters[i], " ")
		if strings.HasSuffix(parameters[i+1], " "+kind) {
			parameters[i] = name
		}
	}
	return strings.Join(parameters, ", ")
}
