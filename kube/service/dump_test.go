package service_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestRealDump resolves the dump of a real API server for every node: there is no problem, every
// view keeps its promises, and there are frontends to serve.
func TestRealDump(t *testing.T) {
	inputs, nodes := decodeDump(t, kubetest.Read(t, "real-cluster-shop.yaml"))
	if len(nodes) < 3 || len(inputs) < 5 {
		t.Fatalf("%d nodes, %d services", len(nodes), len(inputs))
	}
	for _, node := range nodes {
		context := &messages.NodeContext{Node: node, Addresses: node.GetAddresses()}
		actions := map[messages.Action]int{}
		for key, in := range inputs {
			view := service.Resolve(in, context, detect())
			if problem := invariantBroken(view); problem != "" || len(view.GetErrors()) > 0 {
				t.Errorf("%s at %s: %s %v", key, node.GetName(), problem, view.GetErrors())
			}
			if (len(view.GetFrontends()) == 0) != (view.GetNotServed() != "") {
				t.Errorf("%s at %s: %d rows, not served: %q", key, node.GetName(), len(view.GetFrontends()), view.GetNotServed())
			}
			for _, row := range view.GetFrontends() {
				actions[row.GetAction()]++
			}
		}
		t.Logf("%s: %v", node.GetName(), actions)
		// The dump has services without endpoints, and its Local policies have an endpoint on every
		// node.
		if actions[messages.Action_ACTION_FORWARD] == 0 || actions[messages.Action_ACTION_REJECT] == 0 || actions[messages.Action_ACTION_DROP] > 0 {
			t.Errorf("%s: %v", node.GetName(), actions)
		}
	}
}

// decodeDump reads the List and groups the slices by service.
func decodeDump(t *testing.T, text []byte) (map[string]*messages.ServiceInput, []*messages.Node) {
	t.Helper()
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*messages.ServiceInput{}
	of := func(key string) *messages.ServiceInput {
		if inputs[key] == nil {
			inputs[key] = &messages.ServiceInput{Key: key}
		}
		return inputs[key]
	}
	var nodes []*messages.Node
	for _, item := range list.Items {
		var kind struct {
			Kind string `json:"kind"`
		}
		decodeItem(t, item, &kind)
		var problems []*messages.ObjectError
		switch kind.Kind {
		case "Service":
			var object corev1.Service
			decodeItem(t, item, &object)
			var s *messages.Service
			s, problems = normalize.Service("dump", &object)
			of(normalize.ServiceKey(s)).Service = s
		case "EndpointSlice":
			var object discoveryv1.EndpointSlice
			decodeItem(t, item, &object)
			var s *messages.EndpointSlice
			s, problems = normalize.EndpointSlice("dump", &object)
			in := of(normalize.SliceOwner(s))
			in.Slices = append(in.Slices, s)
		case "Node":
			var object corev1.Node
			decodeItem(t, item, &object)
			var n *messages.Node
			n, problems = normalize.Node("dump", &object)
			nodes = append(nodes, n)
		}
		if len(problems) > 0 {
			t.Errorf("problems: %v", problems)
		}
	}
	return inputs, nodes
}

func decodeItem(t *testing.T, item json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(item, into); err != nil {
		t.Fatal(err)
	}
}
