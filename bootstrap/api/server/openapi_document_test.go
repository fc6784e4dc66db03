package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// object is a JSON object. encoding/json orders its names, so that the document does not change by
// itself.
type object = map[string]any

// document makes the OpenAPI document.
func document(t *testing.T) object {
	t.Helper()
	d := &describer{schemas: object{}, comments: map[string]string{}}
	for name, dir := range map[string]string{"api": "..", "live": "../../../actors/chaos/live", "healthcheck": "../../../kube/healthcheck"} {
		d.read(t, name, dir)
	}
	failed := object{"description": "The request failed.", "content": object{"application/json": object{"schema": d.schema(reflect.TypeFor[api.Error]())}}}
	d.schema(reflect.TypeFor[api.Event]())
	d.schema(reflect.TypeFor[live.Record]())
	d.schema(reflect.TypeFor[live.RunStatus]())
	paths := object{}
	for _, o := range operations() {
		if paths[o.path] == nil {
			paths[o.path] = object{}
		}
		paths[o.path].(object)[strings.ToLower(o.method)] = d.operation(&o)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Troupe agent", "version": "v1",
			"description": "State of the agent of one node. The TCP listener is read-only; state-changing calls need the control socket. " +
				"The parameters path and source may hold slashes. Fields may be added.",
			"license": object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
		},
		"servers":    []object{{"url": "http://127.0.0.1:9990", "description": "--http-address, or --control-socket"}},
		"security":   []object{},
		"paths":      paths,
		"components": object{"schemas": d.schemas, "responses": object{"Error": failed}},
	}
}

// describer makes schemas of types, with their comments.
type describer struct {
	schemas  object
	comments map[string]string // "package.Type" and "package.Type.Field"
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// operation describes one method of a path.
func (d *describer) operation(o *operation) object {
	parameters := []object{}
	for _, m := range pathParameter.FindAllStringSubmatch(o.path, -1) {
		schema := object{"type": "string"}
		if m[1] == "verb" {
			schema["enum"] = []api.Verb{api.VerbRestart, api.VerbKill, api.VerbSuspend, api.VerbResume}
		}
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": schema})
	}
	for _, name := range o.query {
		schema := object{"type": "string"}
		switch name {
		case "limit":
			schema = object{"type": "integer", "minimum": 1}
			if o.text == "" {
				schema["maximum"] = api.MaxLimit
			}
		case "before", "after", "cause":
			schema = object{"type": "integer", "minimum": 0}
		case "follow":
			schema = object{"type": "boolean"}
		}
		parameters = append(parameters, object{"name": name, "in": "query", "schema": schema})
	}
	kind, code := "application/json", "200"
	schema := object{"type": "string"}
	if o.text != "" {
		kind = o.text
	} else {
		schema = d.schema(reflect.TypeOf(o.answer))
	}
	if o.code == 202 {
		code = "202"
	}
	answered := object{"description": "Answer.", "content": object{kind: object{"schema": schema}}}
	responses := object{code: answered, "default": object{"$ref": "#/components/responses/Error"}}
	if !strings.HasPrefix(o.path, "/api/") {
		responses["503"] = answered // probes answer alike when they fail
	}
	name := pathParameter.ReplaceAllString(strings.TrimPrefix(o.path, "/api/v1"), "by-$1")
	out := object{
		"summary": o.what, "parameters": parameters, "responses": responses,
		"operationId": strings.ToLower(o.method) + strings.NewReplacer("/", "-", ":", "-", ".", "-").Replace(name),
	}
	if o.body != nil {
		out["requestBody"] = object{"content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(o.body))}}}
	}
	if o.method != "GET" {
		out["description"] = "On the control socket only."
	}
	return out
}

// schema returns the schema of a type; the schema of a struct with a name is a reference.
func (d *describer) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[live.Duration]():
		return object{"type": "string", "examples": []string{"1m30s"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // json.RawMessage
			return object{}
		}
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Struct:
		return d.structure(t)
	default:
		return object{"type": "string"}
	}
}

var generic = regexp.MustCompile(`^Page\[.*\.(\w+)\]$`)

// structure adds the schema of a struct to the components.
func (d *describer) structure(t reflect.Type) object {
	name := generic.ReplaceAllString(t.Name(), "${1}Page")
	if name == "" {
		return object{"type": "object"}
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	if d.schemas[name] != nil {
		return ref
	}
	properties, required := object{}, []string{}
	s := object{"type": "object", "properties": properties}
	d.schemas[name] = s
	if text := d.comments[plain(t)]; text != "" {
		s["description"] = text
	}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			continue // its fields follow
		}
		if tag == "-" || !f.IsExported() {
			continue
		}
		property := d.schema(f.Type)
		if text := d.comments[owner(t, f)+"."+f.Name]; text != "" {
			property["description"] = text
		}
		properties[tag] = property
		if !strings.HasPrefix(options, "omit") {
			required = append(required, tag)
		}
	}
	if len(required) > 0 && !strings.HasSuffix(name, "Request") {
		// a request may leave everything out
		s["required"] = required
	}
	return ref
}

// plain is the name of a type with its package, without type parameters.
func plain(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return path.Base(t.PkgPath()) + "." + name
}

// owner is the name of the type that declares a field, which may be embedded.
func owner(t reflect.Type, f reflect.StructField) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	return plain(t)
}

// read reads the comments of the types of a package.
func (d *describer) read(t *testing.T, pkg, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(names), err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				d.types(pkg, g)
			}
		}
	}
}

// types notes the comments of types and of their fields, as one line each.
func (d *describer) types(pkg string, g *ast.GenDecl) {
	line := func(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
	for _, spec := range g.Specs {
		ts := spec.(*ast.TypeSpec)
		named := pkg + "." + ts.Name.Name
		d.comments[named] = line(g.Doc)
		structure, ok := ts.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range structure.Fields.List {
			for _, name := range f.Names {
				d.comments[named+"."+name.Name] = line(f.Doc)
			}
		}
	}
}
