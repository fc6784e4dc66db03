package informers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// TestTheCacheHoldsNoObjects looks into the caches of a running source: they share the values of
// the Store, and hold no API objects.
func TestTheCacheHoldsNoObjects(t *testing.T) {
	objects := local(kubetest.DumpObjects(t), "edge-1")
	run(t, objects.All(), nil, func(r *running) {
		r.settle()
		for kind, index := range r.source.indexes {
			if len(index.List()) == 0 {
				t.Errorf("no %s in the cache", kind)
			}
			for _, object := range index.List() {
				if _, ok := object.(*held); !ok {
					t.Fatalf("%T in the cache", object)
				}
			}
		}
		stored := map[string]*messages.Service{}
		for _, s := range r.source.store.Snapshot().GetServices() {
			stored[s.GetKey()] = s.GetService()
		}
		for _, object := range r.source.indexes[normalize.KindService].List() {
			service, ok := object.(*held).value.(*messages.Service)
			if !ok || normalize.SelectedService(service) && stored[normalize.ServiceKey(service)] != service {
				t.Errorf("the Store has another %v", service)
			}
		}
	})
}

func TestTransform(t *testing.T) {
	transform := normalised(normalize.Service)
	in := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "u", ResourceVersion: "7", Labels: map[string]string{"x": "y"}},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", ExternalIPs: []string{"nonsense"}},
	}
	before := in.DeepCopy()
	once, err := transform(in)
	if err != nil {
		t.Fatal(err)
	}
	want, problems := normalize.Service(sourceName, in)
	h := once.(*held)
	if diff := cmp.Diff(want, h.value, protocmp.Transform()); diff != "" || len(problems) != 1 {
		t.Errorf("-normalised +held:\n%s", diff)
	}
	if diff := cmp.Diff(problems, h.problems, protocmp.Transform()); diff != "" {
		t.Errorf("problems: -normalised +held:\n%s", diff)
	}
	if key, err := cache.MetaNamespaceKeyFunc(once); key != "a/b" || err != nil || !sameVersion(in, once) {
		t.Errorf("key %q, %v, same version %t", key, err, sameVersion(in, once))
	}
	if diff := cmp.Diff(before, in); diff != "" {
		t.Errorf("the transform changed its input:\n%s", diff)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "a/b"}
	for _, passes := range []any{once, tombstone} {
		if got, err := transform(passes); err != nil || got != passes {
			t.Errorf("%v became %v, %v", passes, got, err)
		}
	}
}
