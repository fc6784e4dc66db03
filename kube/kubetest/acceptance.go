package kubetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Case is the cluster of one acceptance case.
type Case struct {
	// Name is unique over all cases.
	Name string
	// Objects holds the Node, the Services and the EndpointSlices at the start.
	Objects Objects
	// Steps holds the changes that follow, in order.
	Steps []Step
}

// Objects are the API objects of a cluster.
type Objects struct {
	Services       []*corev1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	Nodes          []*corev1.Node
	Pods           []*corev1.Pod
}

// Step is one change of a cluster: objects that are created or replaced, and "namespace/name" of those that are deleted.
type Step struct {
	Apply         Objects
	DeleteService []string
	DeleteSlice   []string
}

// acceptanceCase is what this package reads of a case; kube/service decodes the rest, strictly.
type acceptanceCase struct {
	Name           string                       `json:"name"`
	Node           acceptanceNode               `json:"node"`
	Services       []*corev1.Service            `json:"services"`
	EndpointSlices []*discoveryv1.EndpointSlice `json:"endpointSlices"`
	Steps          []struct {
		Node  *acceptanceNode `json:"node"`
		Apply struct {
			Services       []*corev1.Service            `json:"services"`
			EndpointSlices []*discoveryv1.EndpointSlice `json:"endpointSlices"`
		} `json:"apply"`
		Delete struct {
			Services       []string `json:"services"`
			EndpointSlices []string `json:"endpointSlices"`
		} `json:"delete"`
	} `json:"steps"`
}

type acceptanceNode struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Addresses []string          `json:"addresses"`
}

func (n *acceptanceNode) node() *corev1.Node {
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	for _, a := range n.Addresses {
		out.Status.Addresses = append(out.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return out
}

// Cases returns the clusters of the acceptance cases; the test is skipped where they are not there.
func Cases(t testing.TB) []Case {
	t.Helper()
	var file struct {
		Cases []acceptanceCase `json:"cases"`
	}
	if err := json.Unmarshal(acceptance(t, "service-cases.json"), &file); err != nil {
		t.Fatal(err)
	}
	var out []Case
	for _, c := range file.Cases {
		one := Case{Name: c.Name, Objects: Objects{
			Services: c.Services, EndpointSlices: c.EndpointSlices, Nodes: []*corev1.Node{c.Node.node()},
		}}
		for _, s := range c.Steps {
			step := Step{
				Apply:         Objects{Services: s.Apply.Services, EndpointSlices: s.Apply.EndpointSlices},
				DeleteService: s.Delete.Services, DeleteSlice: s.Delete.EndpointSlices,
			}
			if s.Node != nil {
				step.Apply.Nodes = []*corev1.Node{s.Node.node()}
			}
			one.Steps = append(one.Steps, step)
		}
		out = append(out, one)
	}
	return out
}

// Dump returns the dump of a real cluster of the acceptance material; the test is skipped where it is not there.
func Dump(t testing.TB) []byte {
	t.Helper()
	return acceptance(t, "real-cluster-shop.yaml")
}

// DumpObjects returns the objects of Dump.
func DumpObjects(t testing.TB) Objects {
	t.Helper()
	var list corev1.List
	if err := yaml.Unmarshal(Dump(t), &list); err != nil {
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

// All returns the objects as a fake clientset takes them.
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

// acceptance reads a file of the acceptance material, which stands beside the checkout.
func acceptance(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), "..", "shared", "acceptance", name))
	if os.IsNotExist(err) {
		t.Skipf("no acceptance material beside the checkout (../shared/acceptance/%s)", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// moduleRoot is the directory of go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
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
