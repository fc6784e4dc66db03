package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestA25Golden: testdata has the objects of a catalog, field by field.
func TestA25Golden(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	services, errs := catalog.DecodeYAML(content)
	if errs != nil {
		t.Fatal(errs)
	}
	o := Options{Namespace: "outside", ClusterID: "c1", Prefix: "x-", Flomesh: true}
	wanted := Render([]catalog.Sourced{{Source: "yaml", Services: services}}, Observed{}, o)
	var got strings.Builder
	add := func(object any) {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n" + string(text))
	}
	for _, w := range wanted.Services {
		if w.Service != nil {
			add(w.Service)
		}
		for _, s := range w.Slices {
			add(s)
		}
	}
	for _, p := range wanted.Problems {
		got.WriteString("# " + p.String() + "\n")
	}
	golden := filepath.Join("testdata", "objects.yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}
