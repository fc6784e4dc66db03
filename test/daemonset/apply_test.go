package daemonset_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/manifests"
)

// patched is the kustomization of the test over one of the repository.
const patched = `resources: [../%]
images: [{name: troupe.dev/troupe, newName: troupe.test/troupe, newTag: "1"}]
`

// apply applies a directory of deploy/kubernetes as kubectl apply -k does, with the image of the
// test, the address of the API server and the networks of the cluster.
func (c *cluster) apply(directory, apiServer string) {
	c.Helper()
	c.applyCopy(manifests.Copy(c.T, apiServer, controlplane.ServiceCIDR), directory)
}

// applyCopy does it for a copy of deploy/kubernetes that has been edited.
func (c *cluster) applyCopy(dir, directory string) {
	c.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "test"), 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test", "kustomization.yaml"), []byte(strings.Replace(patched, "%", directory, 1)), 0o600); err != nil {
		c.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		c.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
	for _, object := range manifests.Render(c.T, filepath.Join(dir, "test")) {
		c.applyObject(objects, mapper, object)
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
