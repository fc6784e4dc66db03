package kubetest

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// DumpObjects returns the objects of the dump of a real cluster.
func DumpObjects(t testing.TB) Objects {
	t.Helper()
	var list corev1.List
	if err := yaml.Unmarshal(Read(t, "real-cluster-shop.yaml"), &list); err != nil {
		t.Fatal(err)
	}
	var out Objects
	for _, item := range list.Items {
		var kind metav1.TypeMeta
		must(t, json.Unmarshal(item.Raw, &kind))
		switch kind.Kind {
		case "Service":
			out.Services = append(out.Services, decoded(t, item.Raw, &corev1.Service{}))
		case "EndpointSlice":
			out.EndpointSlices = append(out.EndpointSlices, decoded(t, item.Raw, &discoveryv1.EndpointSlice{}))
		case "Node":
			out.Nodes = append(out.Nodes, decoded(t, item.Raw, &corev1.Node{}))
		case "Pod":
			out.Pods = append(out.Pods, decoded(t, item.Raw, &corev1.Pod{}))
		}
	}
	return out
}

func decoded[T any](t testing.TB, raw []byte, into T) T {
	t.Helper()
	must(t, json.Unmarshal(raw, into))
	return into
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// All returns the objects in the form in which a fake clientset takes them.
func (o Objects) All() []runtime.Object {
	var out []runtime.Object
	for _, s := range o.Services {
		out = append(out, s)
	}
	for _, s := range o.EndpointSlices {
		out = append(out, s)
	}
	for _, n := range o.Nodes {
		out = append(out, n)
	}
	for _, p := range o.Pods {
		out = append(out, p)
	}
	return out
}

// List returns the objects as a kubectl-style List in JSON, which is YAML too.
func (o Objects) List(t testing.TB) []byte {
	t.Helper()
	list := corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	add := func(object runtime.Object, apiVersion, kind string) {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var typed map[string]any
		if err := json.Unmarshal(raw, &typed); err != nil {
			t.Fatal(err)
		}
		typed["apiVersion"], typed["kind"] = apiVersion, kind
		if raw, err = json.Marshal(typed); err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: raw})
	}
	for _, s := range o.Services {
		add(s, "v1", "Service")
	}
	for _, s := range o.EndpointSlices {
		add(s, "discovery.k8s.io/v1", "EndpointSlice")
	}
	for _, n := range o.Nodes {
		add(n, "v1", "Node")
	}
	for _, p := range o.Pods {
		add(p, "v1", "Pod")
	}
	out, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}
