package kubetest

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
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

//go:embed testdata
var material embed.FS

// Load returns the cases.
func Load(t testing.TB) *File {
	t.Helper()
	const name = "service-cases.json"
	file, err := decode(Read(t, name))
	if err != nil {
		t.Fatalf("decode %s: %v", name, err)
	}
	if file.SchemaVersion != 1 {
		t.Fatalf("%s: schema version %d, want 1", name, file.SchemaVersion)
	}
	for i := range file.Cases {
		c := &file.Cases[i]
		c.Objects.Nodes = []*corev1.Node{c.Node.Object()}
		for j := range c.Steps {
			if n := c.Steps[j].Node; n != nil {
				c.Steps[j].Apply.Nodes = []*corev1.Node{n.Object()}
			}
		}
	}
	return file
}

// Read returns a file of testdata.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := material.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decode reads the file strictly: a misspelt field must not be overlooked.
func decode(text []byte) (*File, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var file File
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return &file, nil
}

// CleanupRequired evaluates Outcome.UDPFlowCleanupRequired on the inputs before and after a step,
// by their keys: whether kube-proxy must look for stale UDP flows. This is the case when the
// serving endpoints of a UDP port changed in the slices of a service. A change of a Service object
// alone needs no cleanup.
//
// Troupe has no such decision: a renderer removes the endpoint from its row, and VPP ends the flows
// of the endpoint (TestStaleUDPFlowsEnd in actors/render/nat44).
func CleanupRequired(previous, current map[string]*messages.ServiceInput) bool {
	for key, in := range current {
		if !slices.Equal(udpEndpoints(previous[key]), udpEndpoints(in)) {
			return true
		}
	}
	for key, in := range previous {
		if current[key] == nil && len(udpEndpoints(in)) > 0 {
			return true
		}
	}
	return false
}

// udpEndpoints lists the serving endpoints of the UDP ports in the slices of a service as "port
// name/ip:port", ordered, without duplicates.
func udpEndpoints(in *messages.ServiceInput) []string {
	var list []string
	for _, slice := range in.GetSlices() {
		if slice.GetFamily() == messages.IPFamily_FAMILY_UNSPECIFIED || slice.GetHeadless() {
			continue
		}
		for _, port := range slice.GetPorts() {
			if port.GetProtocol() != messages.Protocol_UDP || port.GetPort() == 0 {
				continue
			}
			for _, e := range slice.GetEndpoints() {
				if e.GetServing() {
					list = append(list, port.GetName()+"/"+service.AddressPortText(e.GetAddress(), port.GetPort()))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
