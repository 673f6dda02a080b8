package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/paghooks/paghooks/gen/spec"
)

//go:embed templates/calls.tmpl
var callsTemplate string

// call is a method of the client that does one operation.
type call struct {
	Name, Summary, URL string
	Parameters         string // caller, id string, body WebhookUpdate
	Fields             string // of the operation struct
	Answer             string // Webhook; "" if there is none
}

func (p provider) callsCode() (string, error) {
	var calls []call
	for _, o := range p.Operations() {
		calls = append(calls, newCall(o))
	}
	t := template.Must(template.New("calls").Funcs(template.FuncMap{"clause": clause, "comment": comment}).Parse(callsTemplate))
	var b bytes.Buffer
	if err := t.Execute(&b, calls); err != nil {
		return "", fmt.Errorf("gen: the template of the calls is wrong, correct it: %w", err)
	}
	return b.String(), nil
}

func newCall(o spec.Operation) call {
	parameters := []string{"caller string"}
	fields := []string{"name: caller", "method: http.Method" + spec.GoName(o.Method), "path: " + strconv.Quote(o.Path)}
	if o.HasID() {
		parameters = append(parameters, "id string")
		fields = append(fields, "id: id")
	}
	var query []string
	for _, p := range o.Query {
		value := spec.ParameterName(p)
		parameters = append(parameters, value+" "+spec.QueryType(p))
		if spec.QueryType(p) == "int" {
			value = "strconv.Itoa(" + value + ")"
		}
		query = append(query, strconv.Quote(p.Name)+": {"+value+"}")
	}
	if query != nil {
		fields = append(fields, "query: url.Values{"+strings.Join(query, ", ")+"}")
	}
	if body := spec.BodySchema(o.Operation); spec.TakesEmptyObject(o.Operation) {
		fields = append(fields, "body: struct{}{}")
	} else if body != nil {
		parameters = append(parameters, "body "+spec.SchemaName(body.Ref))
		fields = append(fields, "body: body")
	}
	c := call{Name: o.OperationID, Summary: o.Summary, URL: o.ExternalDocs.URL, Parameters: grouped(parameters), Fields: strings.Join(fields, ", ")}
	if answer := o.Answer(); answer != nil {
		c.Answer = spec.SchemaName(answer.Ref)
	}
	return c
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
