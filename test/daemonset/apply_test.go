package daemonset_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

// patched is the kustomization of the test over one of the repository.
const patched = `resources: [../%]
images: [{name: troupe.dev/troupe, newName: troupe.test/troupe, newTag: "1"}]
`

// apply applies a directory of deploy/kubernetes as kubectl apply -k does, with the image of the test, the address of the API server and the networks of
// the cluster.
func (c *cluster) apply(directory, apiServer string) {
	c.Helper()
	dir := c.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(build.Root(), "deploy", "kubernetes"))); err != nil {
		c.Fatal(err)
	}
	config := filepath.Join(dir, "base", "agent.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		c.Fatal(err)
	}
	for _, edit := range [][2]string{
		{`apiServer: ""`, `apiServer: "` + apiServer + `"`},
		{"clusterCIDRs: []", "clusterCIDRs: [10.1.0.0/16]"},
		{"serviceCIDRs: []", "serviceCIDRs: [" + controlplane.ServiceCIDR + "]"},
	} {
		if !bytes.Contains(text, []byte(edit[0])) {
			c.Fatalf("%s has no %q to be edited", config, edit[0])
		}
		text = bytes.Replace(text, []byte(edit[0]), []byte(edit[1]), 1)
	}
	files := map[string][]byte{"base/agent.yaml": text, "test/kustomization.yaml": bytes.Replace([]byte(patched), []byte("%"), []byte(directory), 1)}
	if err := os.Mkdir(filepath.Join(dir, "test"), 0o700); err != nil {
		c.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			c.Fatal(err)
		}
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "test"))
	if err != nil {
		c.Fatalf("render %s: %v", directory, err)
	}
	objects, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		c.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
	for _, resource := range rendered.Resources() {
		content, err := resource.Map()
		if err != nil {
			c.Fatalf("render %s: %v", directory, err)
		}
		c.applyObject(objects, mapper, &unstructured.Unstructured{Object: content})
	}
}

// applyObject applies an object on the server side.
func (c *cluster) applyObject(objects dynamic.Interface, mapper *restmapper.DeferredDiscoveryRESTMapper, object *unstructured.Unstructured) {
	c.Helper()
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil {
		client := dynamic.ResourceInterface(objects.Resource(mapping.Resource))
		if object.GetNamespace() != "" {
			client = objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		_, err = client.Apply(context.Background(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true})
	}
	if err != nil {
		c.Fatalf("apply %s %s: %v", kind.Kind, object.GetName(), err)
	}
}
