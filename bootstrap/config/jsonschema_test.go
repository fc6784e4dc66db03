package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSchemaOfTheChart: the schema of the chart's values contains the present schema of the
// configuration; -update writes it.
func TestSchemaOfTheChart(t *testing.T) {
	path := filepath.Join("..", "..", "deploy", "helm", "values.schema.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	values["properties"].(map[string]any)["config"] = jsonSchema()
	var want bytes.Buffer
	out := json.NewEncoder(&want)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(values); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), want.String()); diff != "" {
		t.Errorf("%s differs (-have +want); run with -update:\n%s", path, diff)
	}
}

// TestSchemaHasEveryField: each field of the configuration is at its path.
func TestSchemaHasEveryField(t *testing.T) {
	for _, f := range schema() {
		at := jsonSchema()
		for name := range bytes.SplitSeq([]byte(f.path), []byte(".")) {
			next, ok := at["properties"].(map[string]any)[string(name)].(map[string]any)
			if !ok {
				t.Fatalf("%s is missing", f.path)
			}
			at = next
		}
		if at["description"] == "" {
			t.Errorf("%s has no description", f.path)
		}
	}
}

// jsonSchema returns the JSON schema (draft 7) of a part of a configuration file: every field may
// be absent, and no other field is allowed. Values are checked by their type, their list of allowed
// values and their bounds; Validate checks more.
func jsonSchema() map[string]any {
	comments := fieldComments()
	root := object()
	sections := map[string]map[string]any{"": root}
	for _, f := range schema() {
		parent := strings.TrimSuffix(strings.TrimSuffix(f.path, f.name), ".")
		own := f.jsonSchema()
		own["description"] = comments[f.owner+"."+f.goName]
		if f.section() {
			sections[f.path] = own
		}
		sections[parent]["properties"].(map[string]any)[f.name] = own
	}
	return root
}

// object is the schema of an object without fields.
func object() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
}

// jsonSchema is the schema of one field, without its description.
func (f field) jsonSchema() map[string]any {
	text := map[string]any{"type": "string"}
	list := map[string]any{"type": "array", "items": text}
	switch {
	case f.section():
		return object()
	case f.path == "apiVersion":
		return map[string]any{"const": APIVersion}
	case f.path == "kind":
		return map[string]any{"const": Kind}
	case f.tag.Get("enum") != "":
		return map[string]any{"enum": strings.Split(f.tag.Get("enum"), ",")}
	case f.typ == reflect.TypeFor[Duration]():
		return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case f.typ == reflect.TypeFor[OneOrMore]():
		return map[string]any{"anyOf": []any{text, list}}
	case f.typ.Kind() == reflect.Slice:
		return list
	case f.typ.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case f.typ.Kind() == reflect.Int:
		low, _ := strconv.Atoi(f.tag.Get("min"))
		high, _ := strconv.Atoi(f.tag.Get("max"))
		return map[string]any{"type": "integer", "minimum": low, "maximum": high}
	default:
		return text
	}
}
