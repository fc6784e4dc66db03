package informers

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// everything returns the objects of all acceptance cases and of the real dump.
func everything(t testing.TB) []kubetest.Objects {
	all := []kubetest.Objects{kubetest.DumpObjects(t)}
	for _, c := range kubetest.Cases(t) {
		all = append(all, c.Objects)
		for _, s := range c.Steps {
			all = append(all, s.Apply)
		}
	}
	return all
}

// TestTrimmingLosesNothing: an object means the same after it was trimmed, once or twice.
func TestTrimmingLosesNothing(t *testing.T) {
	for _, objects := range everything(t) {
		for _, o := range objects.Services {
			same(t, o, trimService, normalize.Service)
		}
		for _, o := range objects.EndpointSlices {
			same(t, o, trimSlice, normalize.EndpointSlice)
		}
		for _, o := range objects.Nodes {
			same(t, o, trimNode, normalize.Node)
		}
		for _, o := range objects.Pods {
			same(t, o, trimPod, normalize.Pod)
		}
	}
}

// TestTrimmingKeepsTheProblems: what cannot be used is reported with the same paths.
func TestTrimmingKeepsTheProblems(t *testing.T) {
	odd := corev1.LoadBalancerIPMode("x")
	number, name := int32(70000), "p"
	same(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Labels: map[string]string{normalize.LabelProxyName: "x"}},
		Spec: corev1.ServiceSpec{
			Type: "x", ClusterIP: "x", IPFamilies: []corev1.IPFamily{"x"}, ExternalIPs: []string{"x"}, LoadBalancerSourceRanges: []string{"x"},
			ExternalTrafficPolicy: "x", SessionAffinity: "x", HealthCheckNodePort: -1, Ports: []corev1.ServicePort{{Protocol: "x"}, {Port: -1}, {Port: 1, NodePort: -1}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{Hostname: "x"}, {IP: "1.2.3.4", IPMode: &odd}}}},
	}, trimService, normalize.Service)
	same(t, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "b", Labels: map[string]string{discoveryv1.LabelServiceName: "/", corev1.IsHeadlessService: ""},
			Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: "x"},
		},
		AddressType: "IPv4", Endpoints: []discoveryv1.Endpoint{{}, {Addresses: []string{"x", "y"}}},
		Ports: []discoveryv1.EndpointPort{{}, {Name: &name, Port: &number}},
	}, trimSlice, normalize.EndpointSlice)
	same(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "b", DeletionTimestamp: &metav1.Time{}},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{"x"}, Taints: []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Value: "1"}}},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: "Hostname", Address: "x"}, {Type: "InternalIP", Address: "x"}}},
	}, trimNode, normalize.Node)
	same(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "x"}}}}, trimPod, normalize.Pod)
}

// same compares what an object means before and after trimming.
func same[API runtime.Object, M any](t *testing.T, in API, trim func(API) API, convert func(string, API) (M, []*messages.ObjectError)) {
	t.Helper()
	before := in.DeepCopyObject()
	want, wantProblems := convert("x", in)
	once := trim(in)
	for _, object := range []API{once, trim(once)} {
		got, problems := convert("x", object)
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("trimmed (-whole +trimmed):\n%s", diff)
		}
		if diff := cmp.Diff(wantProblems, problems, protocmp.Transform()); diff != "" {
			t.Errorf("problems (-whole +trimmed):\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, runtime.Object(in)); diff != "" {
		t.Errorf("trimming changed its input:\n%s", diff)
	}
}

// TestTrimmingSavesMemory measures what the cache would hold of the real dump.
func TestTrimmingSavesMemory(t *testing.T) {
	objects := kubetest.DumpObjects(t)
	size := func(o any) int {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	check := func(kind string, whole, trimmed, most int) {
		t.Logf("%s: %d of %d bytes as JSON (%d%%)", kind, trimmed, whole, 100*trimmed/whole)
		if 100*trimmed > most*whole {
			t.Errorf("%s: trimmed to %d of %d bytes, want at most %d%%", kind, trimmed, whole, most)
		}
	}
	var whole, trimmed [4]int
	for _, o := range objects.Services {
		whole[0], trimmed[0] = whole[0]+size(o), trimmed[0]+size(trimService(o))
	}
	for _, o := range objects.EndpointSlices {
		whole[1], trimmed[1] = whole[1]+size(o), trimmed[1]+size(trimSlice(o))
	}
	for _, o := range objects.Nodes {
		whole[2], trimmed[2] = whole[2]+size(o), trimmed[2]+size(trimNode(o))
	}
	for _, o := range objects.Pods {
		whole[3], trimmed[3] = whole[3]+size(o), trimmed[3]+size(trimPod(o))
	}
	for i, kind := range []string{"services", "slices", "nodes", "pods"} {
		check(kind, whole[i], trimmed[i], 45)
	}
}

// TestTheCacheHoldsTrimmedObjects looks into the caches of a running source.
func TestTheCacheHoldsTrimmedObjects(t *testing.T) {
	objects := local(kubetest.DumpObjects(t), "edge-1")
	run(t, objects.All(), nil, func(r *running) {
		r.settle()
		for kind, index := range r.source.indexes {
			if len(index.List()) == 0 {
				t.Errorf("no %s in the cache", kind)
			}
			for _, object := range index.List() {
				o, ok := object.(metav1.Object)
				if !ok {
					t.Fatalf("%T in the cache", object)
				}
				if len(o.GetManagedFields()) > 0 || len(o.GetOwnerReferences()) > 0 || len(o.GetLabels()) > 2 || len(o.GetAnnotations()) > 1 {
					t.Errorf("%s %s is not trimmed", kind, o.GetName())
				}
			}
		}
	})
}

func TestTransformPassesTombstones(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "a/b"}
	if got, err := trimmed(trimService)(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("%v, %v", got, err)
	}
}
