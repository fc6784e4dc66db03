package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSchemaOfTheChart: the chart has the schema of the configuration as it is now among those of
// its values; -update writes it.
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
	values["properties"].(map[string]any)["config"] = JSONSchema()
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
		at := JSONSchema()
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
