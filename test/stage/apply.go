package stage

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// patched is the kustomization of the test over one of the repository.
const patched = `resources: [../%]
images: [{name: troupe.dev/troupe, newName: troupe.test/troupe, newTag: "1"}]
patches:
- target: {kind: DaemonSet}
  patch: |-
    - {op: replace, path: /spec/minReadySeconds, value: 1}
`

// Apply applies a directory of deploy/kubernetes as kubectl apply -k does, with the image of the
// test, the address of the API server and the networks of the cluster.
func (c *Cluster) Apply(directory, apiServer string) {
	c.Helper()
	c.ApplyCopy(CopyManifests(c.T, apiServer, controlplane.ServiceCIDR), directory)
}

// ApplyCopy does it for a copy of deploy/kubernetes that has been edited.
func (c *Cluster) ApplyCopy(dir, directory string) {
	c.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "test"), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test", "kustomization.yaml"), []byte(strings.Replace(patched, "%", directory, 1)), 0o600); err != nil {
		c.Fatal(err)
	}
	c.ApplyAsItIs(filepath.Join(dir, "test"))
}

// ApplyAsItIs applies a directory as kubectl apply -k does.
func (c *Cluster) ApplyAsItIs(dir string) {
	c.Helper()
	objects, mapper := c.Objects()
	for _, object := range RenderManifests(c.T, dir) {
		c.applyObject(objects, mapper, object)
	}
}

// Objects are clients for objects of any kind.
func (c *Cluster) Objects() (dynamic.Interface, meta.RESTMapper) {
	c.Helper()
	objects, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		c.Fatal(err)
	}
	return objects, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
}

// applyObject applies an object on the server side.
func (c *Cluster) applyObject(objects dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) {
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
