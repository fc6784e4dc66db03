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
	"sigs.k8s.io/yaml"
)

// apply applies the resources of a kustomization in their order.
func (c *cluster) apply(dir string) {
	c.Helper()
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	content, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err == nil {
		err = yaml.Unmarshal(content, &kustomization)
	}
	if err != nil {
		c.Fatalf("read kustomization: %v", err)
	}
	for _, resource := range kustomization.Resources {
		c.applyFile(filepath.Join(dir, resource))
	}
}

// applyFile applies the objects of a file on the server side.
func (c *cluster) applyFile(file string) {
	c.Helper()
	objects, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		c.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Admin.Discovery()))
	content, err := os.ReadFile(file)
	if err != nil {
		c.Fatal(err)
	}
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			c.Fatalf("decode %s: %v", file, err)
		}
		if object.Object == nil {
			continue // comments
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			c.Fatalf("%s: %v", file, err)
		}
		client := objects.Resource(mapping.Resource)
		options := metav1.ApplyOptions{FieldManager: "test", Force: true}
		if object.GetNamespace() == "" {
			_, err = client.Apply(context.Background(), object.GetName(), object, options)
		} else {
			_, err = client.Namespace(object.GetNamespace()).Apply(context.Background(), object.GetName(), object, options)
		}
		if err != nil {
			c.Fatalf("apply %s %s of %s: %v", kind.Kind, object.GetName(), file, err)
		}
	}
}
