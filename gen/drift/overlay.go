package drift

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/speakeasy-api/openapi/overlay"
	"gopkg.in/yaml.v3"

	"github.com/paghooks/paghooks/idem/drift"

	"github.com/paghooks/paghooks/gen/spec"
)

// proposal is an overlay that adds unknown fields and types to a spec.
type proposal struct {
	*spec.Spec
	*inference
	overlay  overlay.Overlay
	fields   map[string]*yaml.Node // new ones: schema, properties
	families map[string]string     // new ones: field of the event, schema
}

const overlayComment = `# Made by gen drift. Read it before you apply it: types and names are
# guesses from what was seen, and values of enums come from the bodies.
`

// propose makes a proposal, and marks the differences in it.
func propose(s *spec.Spec, found []*difference) (*proposal, error) {
	in := newInference(s)
	p := &proposal{Spec: s, inference: in, fields: make(map[string]*yaml.Node), families: make(map[string]string)}
	p.overlay.Version = overlay.Version100
	p.overlay.Info = overlay.Info{Title: "What " + s.Name + " does not know", Version: "1"}
	inFile := slices.DeleteFunc(slices.Clone(found), func(d *difference) bool { return d.schema != "" && !s.IsWritten(d.schema) })
	p.addFieldsAndValues(inFile)
	p.relax(inFile)
	p.addEvents(found)
	p.addComponents()
	if err := p.check(); err != nil {
		mark(found, false)
		return nil, err
	}
	return p, nil
}

func (p *proposal) addFieldsAndValues(found []*difference) {
	for _, same := range placesOf(found) {
		switch same[0].Kind {
		case drift.UnknownField:
			mark(same, p.addField(same))
		case drift.UnknownValue:
			mark(same, p.addValues(same))
		}
	}
	for _, schema := range slices.Sorted(maps.Keys(p.fields)) {
		p.update(schema, mapping("properties", p.fields[schema]))
	}
}

// addComponents puts the new schemas first: the rest refers to them.
func (p *proposal) addComponents() {
	if len(p.components) == 0 {
		return
	}
	components := mapping()
	components.Content = p.components
	p.overlay.Actions = slices.Insert(p.overlay.Actions, 0, merged("$.components.schemas", components))
}

// placesOf groups differences by where the spec would have to change: a field
// is new once, although it is new in each event type.
func placesOf(found []*difference) [][]*difference {
	type place struct {
		kind             drift.Kind
		schema, property string
	}
	index := make(map[place]int)
	var out [][]*difference
	for _, d := range found {
		at := place{d.Kind, d.schema, d.property}
		i, ok := index[at]
		if !ok {
			i = len(out)
			index[at] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], d)
	}
	return out
}

func mark(same []*difference, proposed bool) {
	for _, d := range same {
		d.proposed = proposed
	}
}

func valuesOf(same []*difference) (values []any) {
	for _, d := range same {
		values = append(values, d.values...)
	}
	return values
}

func (p *proposal) addField(same []*difference) bool {
	d := same[0]
	owner := p.Schemas()[d.schema].Value
	if fieldNames(p.Spec, owner)[spec.GoName(d.property)] || hasField(p.fields[d.schema], d.property) {
		return false // the Go struct has that name
	}
	schema := p.schema(d.schema, d.property, d.Path, valuesOf(same))
	if schema == nil {
		return false
	}
	if p.fields[d.schema] == nil {
		p.fields[d.schema] = mapping()
	}
	put(p.fields[d.schema], d.property, schema)
	return true
}

// hasField reports whether a property has the Go name that another would have.
func hasField(properties *yaml.Node, name string) bool {
	if properties == nil {
		return false
	}
	for i := 0; i < len(properties.Content); i += 2 {
		if spec.GoName(properties.Content[i].Value) == spec.GoName(name) {
			return true
		}
	}
	return false
}

func (p *proposal) addValues(same []*difference) bool {
	enum := same[0].schema
	var values []string
	for _, v := range valuesOf(same) {
		value := v.(string)
		name := enum + spec.GoName(value)
		if slices.Contains(values, value) {
			continue
		}
		if _, taken := p.names[name]; taken || drift.Name(value) != value || spec.GoName(value) == "" {
			return false // somebody's data, perhaps
		}
		p.names[name] = "a new value"
		values = append(values, value)
	}
	slices.Sort(values)
	at := target(enum)
	if p.Schemas()[enum].Value.Extensions[spec.OpenEnumName] != nil {
		at += ".anyOf[0]"
	}
	p.overlay.Actions = append(p.overlay.Actions, merged(at, mapping("enum", texts(values))))
	return true
}

// relax lets a field be null that was null, and takes a field that was missing from the required
// properties. The envelope's are left, code is written for them, and so are
// those that an event is nothing without.
func (p *proposal) relax(found []*difference) {
	absent := make(map[string][]string)
	for _, same := range placesOf(found) {
		d := same[0]
		switch {
		case d.Kind != drift.UnexpectedNull && d.Kind != drift.MissingRequired:
			continue
		case d.property == "" || d.schema == spec.EnvelopeName || p.IsEssential(d.schema, d.property):
			continue
		case d.Kind == drift.UnexpectedNull:
			p.allowNull(d.schema, d.property)
		default:
			absent[d.schema] = append(absent[d.schema], d.property)
		}
		mark(same, true)
	}
	for _, schema := range slices.Sorted(maps.Keys(absent)) {
		left := slices.DeleteFunc(slices.Clone(p.Schemas()[schema].Value.Required), func(name string) bool {
			return slices.Contains(absent[schema], name)
		})
		p.overlay.Actions = append(p.overlay.Actions, overlay.Action{Target: target(schema) + ".required", Remove: true})
		if len(left) > 0 {
			p.update(schema, mapping("required", texts(left)))
		}
	}
}

// allowNull changes a property that cannot be null, so that it can.
func (p *proposal) allowNull(schema, property string) {
	ref := p.Schemas()[schema].Value.Properties[property]
	change := scalarNode(spec.Scalar{Kind: spec.TypeOf(ref.Value)}, true)
	if ref.Ref != "" {
		change = mapping("oneOf", sequence(mapping("$ref", text(ref.Ref)), mapping("type", text("null"))))
		p.overlay.Actions = append(p.overlay.Actions, overlay.Action{Target: target(schema) + ".properties['" + property + "']['$ref']", Remove: true})
	}
	p.update(schema, mapping("properties", mapping(property, change)))
}

func target(schema string) string { return "$.components.schemas." + schema }

func (p *proposal) update(schema string, with *yaml.Node) {
	p.overlay.Actions = append(p.overlay.Actions, merged(target(schema), with))
}

func merged(target string, with *yaml.Node) overlay.Action {
	return overlay.Action{Target: target, Update: *with}
}

// check applies the proposal and has the linter look at the result.
func (p *proposal) check() error {
	if len(p.overlay.Actions) == 0 {
		return nil
	}
	data, err := spec.Apply(&p.overlay, p.Data)
	if err != nil {
		return fmt.Errorf("gen: the overlay that drift makes does not fit, correct gen: %w", err)
	}
	changed, err := spec.Parse(p.Name+" with the proposal", data)
	if err != nil {
		return err
	}
	return changed.Lint()
}

// save writes the overlay, if there is a path for it and anything in it.
func (p *proposal) save(path string) error {
	if path == "" || len(p.overlay.Actions) == 0 {
		return nil
	}
	data, err := spec.YAML(&p.overlay)
	if err != nil {
		return fmt.Errorf("gen: cannot write the overlay as YAML, correct gen: %w", err)
	}
	if err := os.WriteFile(path, append([]byte(overlayComment), data...), 0o644); err != nil {
		return fmt.Errorf("gen: cannot write the overlay: %w", err)
	}
	return nil
}
