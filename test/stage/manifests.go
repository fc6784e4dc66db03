package stage

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/troupe-vpp/troupe/test/build"
)

// CopyManifests returns a copy of deploy/kubernetes, in which agent.yaml has the URL of an API
// server and the CIDR of services.
func CopyManifests(t testing.TB, apiServer, serviceCIDR string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(build.Root(), "deploy", "kubernetes"))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "base", "agent.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{
		{`apiServer: ""`, `apiServer: "` + apiServer + `"`},
		{"serviceCIDRs: []", "serviceCIDRs: [" + serviceCIDR + "]"},
	} {
		if !bytes.Contains(text, []byte(edit[0])) {
			t.Fatalf("%s has no %q to be edited", config, edit[0])
		}
		text = bytes.Replace(text, []byte(edit[0]), []byte(edit[1]), 1)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// RenderManifests returns the objects of a directory, as kubectl apply -k sends them.
func RenderManifests(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("render %s: %v", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, r := range rendered.Resources() {
		content, err := r.Map()
		if err != nil {
			t.Fatalf("render %s: %v", dir, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}
