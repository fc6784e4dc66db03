package daemonset_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
patches:
- target: {kind: DaemonSet}
  patch: |-
    - {op: replace, path: /spec/minReadySeconds, value: 1}
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
	c.applyAsItIs(filepath.Join(dir, "test"))
}

// applyAsItIs applies a directory as kubectl apply -k does.
func (c *cluster) applyAsItIs(dir string) {
	c.Helper()
	objects, mapper := c.objects()
	for _, object := range manifests.Render(c.T, dir) {
		c.applyObject(objects, mapper, object)
	}
}

// objects are clients for objects of any kind.
func (c *cluster) objects() (dynamic.Interface, meta.RESTMapper) {
	c.Helper()
	objects, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		c.Fatal(err)
	}
	return objects, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
}

// deleteAll deletes the objects of a directory as kubectl delete -k does, and waits until they are
// gone.
func (c *cluster) deleteAll(dir string) {
	c.Helper()
	objects, mapper := c.objects()
	for _, object := range manifests.Render(c.T, dir) {
		mapping, err := mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			c.Fatal(err)
		}
		client := dynamic.ResourceInterface(objects.Resource(mapping.Resource))
		if object.GetNamespace() != "" {
			client = objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			c.Fatalf("delete %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		controlplane.Eventually(c, object.GetKind()+" "+object.GetName()+" gone", func() string {
			if _, err := client.Get(context.Background(), object.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
				return ""
			}
			return "it is there"
		})
	}
}

// applyObject applies an object on the server side.
func (c *cluster) applyObject(objects dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) {
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
