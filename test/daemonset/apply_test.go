package daemonset_test

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/troupe-vpp/troupe/test/controlplane"
	"github.com/troupe-vpp/troupe/test/stage"
)

// deleteAll deletes the objects of a directory as kubectl delete -k does, and waits until they are
// gone.
func (c *cluster) deleteAll(dir string) {
	c.Helper()
	objects, mapper := c.Objects()
	for _, object := range stage.RenderManifests(c.T, dir) {
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
