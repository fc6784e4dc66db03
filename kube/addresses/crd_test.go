package addresses

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the definition of AddressPool")

// TestDefinition: the manifest has the schema of the Go type; -update writes it.
func TestDefinition(t *testing.T) {
	path := filepath.Join("..", "..", "deploy", "kubernetes", "addresses", "definition.yaml")
	text, err := yaml.Marshal(definition(t))
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte("# Made from kube/addresses/api.go by `go test ./kube/addresses -run Definition -update`.\n"), text...)
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s differs (-have +want), run with -update: %v\n%s", path, err, cmp.Diff(string(have), string(want)))
	}
}

// definition is the CustomResourceDefinition. Helm leaves it where its release goes, as pools are
// objects of users.
func definition(t *testing.T) map[string]any {
	group, docs := GroupVersion(), comments(t)
	root := schemaOf(t, reflect.TypeFor[AddressPool](), docs)
	root["description"] = docs["AddressPool"]
	type object = map[string]any
	column := func(name, kind, path string) object { return object{"name": name, "type": kind, "jsonPath": path} }
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "addresspools." + group.Group, "annotations": object{"helm.sh/resource-policy": "keep"}},
		"spec": object{
			"group": group.Group, "scope": "Cluster",
			"names": object{"kind": "AddressPool", "listKind": "AddressPoolList", "plural": "addresspools", "singular": "addresspool"},
			"versions": []any{object{
				"name": group.Version, "served": true, "storage": true, "subresources": object{"status": object{}}, "schema": object{"openAPIV3Schema": root},
				"additionalPrinterColumns": []any{
					column("Addresses", "string", ".spec.addresses"), column("Given", "integer", ".status.given"), column("Free", "integer", ".status.free"),
					column("Ready", "string", `.status.conditions[?(@.type=="Ready")].status`), column("Age", "date", ".metadata.creationTimestamp"),
				},
			}},
		},
	}
}

// schemaOf is the structural schema of a type. The tag `schema` of a field adds to it.
func schemaOf(t *testing.T, of reflect.Type, docs map[string]string) map[string]any {
	switch {
	case of == reflect.TypeFor[metav1.ObjectMeta]():
		return map[string]any{"type": "object"}
	case of == reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return schemaOf(t, of.Elem(), docs)
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t, of.Elem(), docs)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t, of.Elem(), docs)}
	case reflect.Struct:
	default:
		t.Fatalf("no schema for %s", of)
	}
	properties, required := map[string]any{}, []any{}
	out := map[string]any{"type": "object", "properties": properties}
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type == reflect.TypeFor[metav1.TypeMeta]() {
			properties["apiVersion"], properties["kind"] = map[string]any{"type": "string"}, map[string]any{"type": "string"}
			continue
		}
		one, more := schemaOf(t, f.Type, docs), map[string]any{}
		if doc := docs[of.Name()+"."+f.Name]; doc != "" {
			one["description"] = doc
		}
		if err := yaml.Unmarshal([]byte(f.Tag.Get("schema")), &more); err != nil {
			t.Fatalf("tag of %s: %v", f.Name, err)
		}
		merge(one, more)
		properties[name] = one
		if options == "" && name != "metadata" {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// merge adds more to a schema.
func merge(to, more map[string]any) {
	for key, value := range more {
		inner, is := value.(map[string]any)
		if have, both := to[key].(map[string]any); is && both {
			merge(have, inner)
			continue
		}
		to[key] = value
	}
}

// comments are the comments of the types and fields in api.go, by "Type" and "Type.Field".
func comments(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "api.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, decl := range file.Decls {
		d, is := decl.(*ast.GenDecl)
		if !is || d.Tok != token.TYPE {
			continue
		}
		one := d.Specs[0].(*ast.TypeSpec)
		out[one.Name.Name] = strings.Join(strings.Fields(d.Doc.Text()), " ")
		for _, f := range one.Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				out[one.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
	}
	return out
}

// TestPool: an object => its pool, or what is wrong with it.
func TestPool(t *testing.T) {
	for name, tt := range map[string]struct{ spec, want string }{
		"as it should be": {"{addresses: [192.0.2.0/30, 2001:db8::1-2001:db8::2], avoid: [0], virtualRouters: 7-9}", "192.0.2.0-192.0.2.3 2001:db8::1-2001:db8::2 7-9 [0]"},
		"defaults":        {"{addresses: [192.0.2.0/30]}", "192.0.2.0-192.0.2.3 1-255 []"},
		"backwards":       {"{addresses: [192.0.2.9-192.0.2.1]}", `invalid address pool p: "192.0.2.9-192.0.2.1" is no range of addresses of one family`},
		"no network":      {"{addresses: [192.0.2.1/24]}", `invalid address pool p: "192.0.2.1/24" is no network such as 192.0.2.0/28 and no range such as 192.0.2.1-192.0.2.9`},
		"virtual routers": {"{addresses: [192.0.2.0/30], virtualRouters: 0-9}", `invalid address pool p: virtualRouters "0-9" is no range from 1 to 255 such as 1-255`},
		"avoid":           {"{addresses: [192.0.2.0/30], avoid: [256]}", "invalid address pool p: avoid has 256, which is no byte"},
		"selector":        {"{addresses: [192.0.2.0/30], serviceSelector: {matchExpressions: [{key: a, operator: Is}]}}", `invalid address pool p: serviceSelector: "Is" is not a valid label selector operator`},
	} {
		t.Run(name, func(t *testing.T) {
			object := &AddressPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			if err := yaml.UnmarshalStrict([]byte(tt.spec), &object.Spec); err != nil {
				t.Fatal(err)
			}
			got := ""
			if p := object.DeepCopyObject().(*AddressPool).Pool(); p.Wrong != nil {
				got = p.Wrong.Error()
			} else {
				for _, r := range p.Ranges {
					got += r.String() + " "
				}
				got += fmt.Sprintf("%d-%d %v", p.First, p.Last, p.Avoid)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
