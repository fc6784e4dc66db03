package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

//go:embed types.go
var typesSource string

// FieldDoc explains one field.
type FieldDoc struct {
	// Path in a file, for example "vpp.apiSocket".
	Path string `json:"path"`
	// Type in words.
	Type string `json:"type"`
	// Default as written in a file; "" for an object.
	Default string `json:"default,omitempty"`
	// Flag that overrides the field; "" = none.
	Flag string `json:"flag,omitempty"`
	// Allowed holds the only values that are accepted, if the field has such a list.
	Allowed []string `json:"allowed,omitempty"`
	// Min and Max are the bounds of a number or duration.
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
	// Doc is the explanation.
	Doc string `json:"doc"`
}

// Explain returns the documentation of the field at path and of the fields below it, in the order
// of the document; "" = of all fields. The error for an unknown path suggests a similar one.
func Explain(path string) ([]FieldDoc, error) {
	comments, defaults := fieldComments(), Defaults()
	var docs []FieldDoc
	var known []string
	for _, f := range schema() {
		known = append(known, f.path)
		if path != "" && f.path != path && !strings.HasPrefix(f.path, path+".") {
			continue
		}
		d := FieldDoc{
			Path: f.path, Type: f.typeName(), Flag: f.tag.Get("flag"), Min: f.tag.Get("min"), Max: f.tag.Get("max"),
			Doc: comments[f.owner+"."+f.goName],
		}
		if !f.section() {
			d.Default = inline(f.value(defaults).Interface())
		}
		if enum := f.tag.Get("enum"); enum != "" {
			d.Allowed = strings.Split(enum, ",")
		}
		docs = append(docs, d)
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("configuration has no field %q%s", path, strictyaml.Suggestion(path, known))
	}
	return docs, nil
}

// Marshal writes a configuration as a YAML document in the order of the struct; with comments it
// writes the documentation above each field.
func Marshal(a *Agent, comments bool) string {
	var b strings.Builder
	docs := fieldComments()
	for _, f := range schema() {
		indent := strings.Repeat("  ", f.depth())
		if comments {
			if f.depth() == 0 && f.path != "apiVersion" {
				b.WriteString("\n")
			}
			for _, line := range Wrap(docs[f.owner+"."+f.goName], 100-len(indent)) {
				b.WriteString(indent + "# " + line + "\n")
			}
		}
		if f.section() {
			b.WriteString(indent + f.name + ":\n")
			continue
		}
		b.WriteString(indent + f.name + ": " + inline(f.value(a).Interface()) + "\n")
	}
	return b.String()
}

// inline is a value in YAML on one line. It quotes strings that YAML could read as another type.
func inline(value any) string {
	switch v := value.(type) {
	case string:
		if v != "" && !strings.ContainsAny(v, "#,[]{}&*!?|>'\"%@` \t\n\\") && !strings.HasPrefix(v, "-") && !ambiguous(v) {
			return v
		}
	case Duration:
		return v.String()
	}
	text, err := json.Marshal(value) // JSON is YAML
	if err != nil {
		panic("config: " + err.Error())
	}
	return string(text)
}

// ambiguous reports whether YAML could read an unquoted word as another type than a string.
func ambiguous(v string) bool {
	if strings.HasSuffix(v, ":") || strings.Trim(v, "0123456789+-.:_abcdefABCDEFoOxX") == "" {
		return true
	}
	return slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "~", "y", "n"}, strings.ToLower(v))
}

// fieldComments returns the comments of types.go by "Struct.Field", as one paragraph each.
var fieldComments = sync.OnceValue(func() map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", typesSource, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		panic("config: " + err.Error()) // the compiler has parsed the same file
	}
	docs := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					docs[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	return docs
})

// Wrap breaks a paragraph at spaces into lines of at most width characters; a longer word gets a
// line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
