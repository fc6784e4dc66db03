package mirror

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/messages"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(saverEnv); dir != "" {
		saveForever(dir)
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// service is the input of a service of that name with one endpoint.
func service(name string, generation uint64) *messages.ServiceInput {
	return &messages.ServiceInput{
		Key: "shop/" + name, Generation: generation,
		Service: &messages.Service{Namespace: "shop", Name: name, Uid: "uid-" + name, ClusterIps: []string{"10.96.0.1"}},
		Slices: []*messages.EndpointSlice{{
			Namespace: "shop", Name: name + "-1", Service: name, Family: messages.IPFamily_IPV4,
			Endpoints: []*messages.Endpoint{{Address: "10.1.1.1", Ready: true, Serving: true, ZoneHints: []string{"a"}}},
		}},
	}
}

// cluster is a snapshot of a cluster with one node, n1, and some services.
func cluster(name string, services ...*messages.ServiceInput) *messages.Snapshot {
	self := &messages.Node{Name: "n1", Uid: "node-of-" + name, Addresses: []string{"192.168.1.1"}}
	highest := uint64(1)
	for _, in := range services {
		highest = max(highest, in.GetGeneration())
	}
	return &messages.Snapshot{
		Services: services, Complete: true, Generation: highest,
		Node: &messages.NodeInput{
			Self: self, Nodes: map[string]*messages.Node{"n1": self}, Generation: 1,
			Pods: []*messages.Pod{{Namespace: "shop", Name: "p", Node: "n1", Addresses: []string{"10.1.1.1"}}},
		},
	}
}

// anyMirror draws a state that a source could deliver.
func anyMirror(t *rapid.T) *messages.Mirror {
	text := rapid.StringMatching(`[a-z0-9]{1,8}`)
	names := rapid.SliceOfNDistinct(text, 0, 6, rapid.ID[string]).Draw(t, "names")
	var inputs []*messages.ServiceInput
	for _, name := range names {
		in := service(name, rapid.Uint64().Draw(t, "generation"))
		if rapid.Bool().Draw(t, "without slices") {
			in.Slices = nil
		}
		if rapid.Bool().Draw(t, "error") {
			in.Errors = []*messages.ObjectError{{Source: "kubernetes", Kind: "Service", Object: in.Key, Message: rapid.String().Draw(t, "message")}}
		}
		inputs = append(inputs, in)
	}
	sortByKey(inputs)
	s := cluster(text.Draw(t, "cluster"), inputs...)
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		name := fmt.Sprint("peer", i)
		s.Node.Nodes[name] = &messages.Node{Name: name, Uid: text.Draw(t, "uid")}
	}
	return &messages.Mirror{
		Revision: rapid.Uint64().Draw(t, "revision"), Saved: rapid.Int64().Draw(t, "saved"), Node: "n1", Source: "kubernetes", Snapshot: s,
	}
}

// earlier returns the state in the form that a later run reads: not complete, all generations 0.
func earlier(m *messages.Mirror) *messages.Mirror {
	out := proto.CloneOf(m)
	out.Snapshot.Complete, out.Snapshot.Generation, out.Snapshot.Node.Generation = false, 0, 0
	for _, in := range out.Snapshot.Services {
		in.Generation = 0
	}
	return out
}
