package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// facts lists what a package exports. Each fact is a line "name: description".
func facts(name string, pkg *types.Package) []string {
	f := &finder{prefix: name + ".", home: pkg}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			f.object(obj)
		}
	}
	return f.lines
}

type finder struct {
	prefix string
	home   *types.Package
	lines  []string
}

func (f *finder) add(name, format string, args ...any) {
	f.lines = append(f.lines, f.prefix+name+": "+fmt.Sprintf(format, args...))
}

func (f *finder) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		f.add(obj.Name(), "const %s = %s", f.typ(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		f.add(obj.Name(), "var %s", f.typ(obj.Type()))
	case *types.Func:
		f.add(obj.Name(), "func%s", f.signature(obj.Signature()))
	case *types.TypeName:
		f.typeName(obj)
	}
}

func (f *finder) typeName(obj *types.TypeName) {
	if obj.IsAlias() {
		f.add(obj.Name(), "type = %s", f.typ(types.Unalias(obj.Type())))
		return
	}
	named := obj.Type().(*types.Named)
	params := f.typeParams(named.TypeParams())
	switch under := named.Underlying().(type) {
	case *types.Struct:
		f.add(obj.Name(), "type%s struct", params)
		if types.Comparable(named) {
			f.add(obj.Name(), "comparable")
		}
		f.fields(obj.Name(), under)
	case *types.Interface:
		f.iface(obj.Name(), params, under)
		return
	default:
		f.add(obj.Name(), "type%s %s", params, f.typ(under))
	}
	f.methods(named)
}

func (f *finder) fields(name string, s *types.Struct) {
	for field := range s.Fields() {
		switch {
		case !field.Exported():
		case field.Embedded():
			f.add(name+"."+field.Name(), "embedded %s", f.typ(field.Type()))
		default:
			f.add(name+"."+field.Name(), "field %s", f.typ(field.Type()))
		}
	}
}

// iface tells an interface that others can implement as a whole, because one
// more method breaks them; of any other, method by method.
func (f *finder) iface(name, params string, i *types.Interface) {
	unexported := func(m *types.Func) bool { return !m.Exported() }
	if !slices.ContainsFunc(slices.Collect(i.Methods()), unexported) {
		f.add(name, "type%s %s", params, f.whole(i))
		return
	}
	f.add(name, "type%s interface, not for others to implement", params)
	for m := range i.Methods() {
		if m.Exported() {
			f.add(name+"."+m.Name(), "method%s", f.signature(m.Signature()))
		}
	}
}

func (f *finder) whole(i *types.Interface) string {
	if !i.IsMethodSet() {
		return f.typ(i)
	}
	var methods []string
	for m := range i.Methods() {
		methods = append(methods, m.Name()+f.signature(m.Signature()))
	}
	return "interface { " + strings.Join(methods, "; ") + " }"
}

// methods tells the methods, promoted ones too.
func (f *finder) methods(named *types.Named) {
	ofValue := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !m.Obj().Exported() {
			continue
		}
		of := "pointer"
		if ofValue.Lookup(m.Obj().Pkg(), m.Obj().Name()) != nil {
			of = "value"
		}
		f.add(named.Obj().Name()+"."+m.Obj().Name(), "%s method%s", of, f.signature(m.Type().(*types.Signature)))
	}
}

func (f *finder) typeParams(list *types.TypeParamList) string {
	var params []string
	for p := range list.TypeParams() {
		params = append(params, p.Obj().Name()+" "+f.typ(p.Constraint()))
	}
	if params == nil {
		return ""
	}
	return "[" + strings.Join(params, ", ") + "]"
}

// signature is a function's type without its "func".
func (f *finder) signature(s *types.Signature) string {
	return f.typeParams(s.TypeParams()) + strings.TrimPrefix(f.typ(s), "func")
}

// typ is a type as text, with the last part of each package's path.
func (f *finder) typ(t types.Type) string {
	return types.TypeString(unnamed(t), func(p *types.Package) string {
		if p == f.home {
			return ""
		}
		return p.Name()
	})
}

// unnamed is the type without names of parameters: they are no part of the API.
func unnamed(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Array:
		return types.NewArray(unnamed(t.Elem()), t.Len())
	case *types.Map:
		return types.NewMap(unnamed(t.Key()), unnamed(t.Elem()))
	case *types.Chan:
		return types.NewChan(t.Dir(), unnamed(t.Elem()))
	case *types.Interface:
		var methods []*types.Func
		for m := range t.ExplicitMethods() {
			methods = append(methods, types.NewFunc(m.Pos(), m.Pkg(), m.Name(), unnamed(m.Signature()).(*types.Signature)))
		}
		return types.NewInterfaceType(methods, slices.Collect(t.EmbeddedTypes())).Complete()
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, unnamedTuple(t.Params()), unnamedTuple(t.Results()), t.Variadic())
	}
	return t
}

func unnamedTuple(tuple *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range tuple.Variables() {
		vars = append(vars, types.NewVar(v.Pos(), v.Pkg(), "", unnamed(v.Type())))
	}
	return types.NewTuple(vars...)
}
