package service_test

import (
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestSelection: one ClusterIP service with one slice. want is the row of the cluster IP without
// its address, for the Cluster policy and for internalTrafficPolicy Local.
func TestSelection(t *testing.T) {
	const masq = " masq=node,remote"
	for _, test := range []struct {
		name           string
		endpoints      []string
		node           *messages.NodeContext
		cluster, local string
	}{
		{
			"nothing anywhere is a reject for both policies", nil, nil,
			"reject", "reject",
		},
		{
			"ready endpoints are used",
			[]string{"10.0.0.1@n1", "10.0.0.2@n2"},
			nil,
			"forward 10.0.0.1:8080,10.0.0.2:8080" + masq, "forward 10.0.0.1:8080" + masq,
		},
		{
			"endpoints elsewhere only are a drop for Local",
			[]string{"10.0.0.2@n2"},
			nil,
			"forward 10.0.0.2:8080" + masq, "drop",
		},
		{
			"an endpoint that is not ready is not used",
			[]string{"10.0.0.1@n1 notready", "10.0.0.2@n1"},
			nil,
			"forward 10.0.0.2:8080" + masq, "forward 10.0.0.2:8080" + masq,
		},
		{
			"unready endpoints alone are a reject, not a drop",
			[]string{"10.0.0.1@n1 notready", "10.0.0.2@n2 notready"},
			nil,
			"reject", "reject",
		},
		{
			"serving alone is no use",
			[]string{"10.0.0.1@n1 notready serving"},
			nil,
			"reject", "reject",
		},
		{
			"terminating without serving is no use",
			[]string{"10.0.0.1@n1 notready terminating"},
			nil,
			"reject", "reject",
		},
		{
			"terminating and serving is the last resort",
			[]string{"10.0.0.1@n1 notready serving terminating"},
			nil,
			"forward 10.0.0.1:8080" + masq, "forward 10.0.0.1:8080" + masq,
		},
		{
			"one ready endpoint beats all terminating ones, set by set",
			[]string{"10.0.0.1@n1 notready serving terminating", "10.0.0.2@n2"},
			nil,
			"forward 10.0.0.2:8080" + masq, "forward 10.0.0.1:8080" + masq,
		},
		{
			"ready and terminating counts as ready",
			[]string{"10.0.0.1@n1 terminating", "10.0.0.2@n1 notready serving terminating"},
			nil,
			"forward 10.0.0.1:8080" + masq, "forward 10.0.0.1:8080" + masq,
		},
		{
			"ready without serving counts as ready",
			[]string{"10.0.0.1@n1 notserving"},
			nil,
			"forward 10.0.0.1:8080" + masq, "forward 10.0.0.1:8080" + masq,
		},
		{
			"remote terminating endpoints are a drop for Local",
			[]string{"10.0.0.2@n2 notready serving terminating"},
			nil,
			"forward 10.0.0.2:8080" + masq, "drop",
		},
		{
			"an endpoint without a node is not local",
			[]string{"10.0.0.1"},
			nil,
			"forward 10.0.0.1:8080" + masq, "drop",
		},
		{
			"a node without a name has no local endpoints",
			[]string{"10.0.0.1", "10.0.0.2@n1"},
			&messages.NodeContext{},
			"forward 10.0.0.1:8080,10.0.0.2:8080" + masq, "drop",
		},
		{
			"node names are compared exactly",
			[]string{"10.0.0.1@N1", "10.0.0.2@n1."},
			nil,
			"forward 10.0.0.1:8080,10.0.0.2:8080" + masq, "drop",
		},
		{
			"the order is that of the text ip:port",
			[]string{"10.0.0.2@n1", "10.0.0.10@n1", "10.0.0.1@n1"},
			nil,
			"forward 10.0.0.10:8080,10.0.0.1:8080,10.0.0.2:8080" + masq, "forward 10.0.0.10:8080,10.0.0.1:8080,10.0.0.2:8080" + masq,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.node == nil {
				test.node = nodeN1()
			}
			view := service.Resolve(input(webService(), sliceOf("a", test.endpoints...)), test.node, detect())
			wantLines(t, view, "10.96.0.10:80/TCP any "+test.cluster)
			view = service.Resolve(input(webService(internalLocal), sliceOf("a", test.endpoints...)), test.node, detect())
			wantLines(t, view, "10.96.0.10:80/TCP any "+test.local)
		})
	}
}

// TestHints: hints filter the Cluster set only. .1 and .2 are on other nodes and .3 is on this one,
// with other hints, so that every rule gives another answer.
func TestHints(t *testing.T) {
	anywhere := "forward 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080"
	for _, test := range []struct {
		name      string
		endpoints []string
		node      *messages.Node
		want      string
	}{
		{
			"zone hints on every ready endpoint are followed",
			[]string{"10.0.0.1@n2 zone=a", "10.0.0.2@n2 zone=b", "10.0.0.3@n1 zone=b"},
			nil,
			"forward 10.0.0.1:8080",
		},
		{
			"one ready endpoint without a hint switches them off",
			[]string{"10.0.0.1@n2 zone=a", "10.0.0.2@n2", "10.0.0.3@n1 zone=b"},
			nil, anywhere,
		},
		{
			"an unready endpoint without a hint does not",
			[]string{"10.0.0.1@n2 zone=a", "10.0.0.2@n2 notready", "10.0.0.3@n1 zone=b"},
			nil,
			"forward 10.0.0.1:8080",
		},
		{
			"a terminating endpoint without a hint does not, and is not used",
			[]string{"10.0.0.1@n2 zone=a", "10.0.0.2@n2 notready serving terminating", "10.0.0.3@n1 zone=b"},
			nil,
			"forward 10.0.0.1:8080",
		},
		{
			"hints that do not name this zone are ignored",
			[]string{"10.0.0.1@n2 zone=b", "10.0.0.2@n2 zone=b", "10.0.0.3@n1 zone=c"},
			nil, anywhere,
		},
		{
			"an endpoint may be hinted for several zones",
			[]string{"10.0.0.1@n2 zone=b zone=a", "10.0.0.2@n2 zone=b", "10.0.0.3@n1 zone=a"},
			nil,
			"forward 10.0.0.1:8080,10.0.0.3:8080",
		},
		{
			"a node without a zone follows no zone hints, not even empty ones",
			[]string{"10.0.0.1@n2 zone=", "10.0.0.2@n2 zone=b", "10.0.0.3@n1 zone=b"},
			&messages.Node{Name: "n1"}, anywhere,
		},
		{
			"node hints come before zone hints",
			[]string{"10.0.0.1@n2 zone=a node=n2", "10.0.0.2@n2 zone=b node=n1", "10.0.0.3@n1 zone=a node=n3"},
			nil,
			"forward 10.0.0.2:8080",
		},
		{
			"zone hints are followed where no node hint names this node",
			[]string{"10.0.0.1@n2 zone=a node=n2", "10.0.0.2@n2 zone=b node=n2", "10.0.0.3@n1 zone=b node=n3"},
			nil,
			"forward 10.0.0.1:8080",
		},
		{
			"zone hints are followed where a node hint is missing",
			[]string{"10.0.0.1@n2 zone=a node=n1", "10.0.0.2@n2 zone=a", "10.0.0.3@n1 zone=b node=n1"},
			nil,
			"forward 10.0.0.1:8080,10.0.0.2:8080",
		},
		{
			"node hints are followed where a zone hint is missing",
			[]string{"10.0.0.1@n2 node=n1", "10.0.0.2@n2 zone=a node=n2", "10.0.0.3@n1 zone=a node=n2"},
			nil,
			"forward 10.0.0.1:8080",
		},
		{
			"neither matches: all",
			[]string{"10.0.0.1@n2 zone=b node=n2", "10.0.0.2@n2 zone=b node=n2", "10.0.0.3@n1 zone=b node=n2"},
			nil, anywhere,
		},
		{
			"the terminating fallback ignores hints",
			[]string{
				"10.0.0.1@n2 zone=a notready serving terminating", "10.0.0.2@n2 zone=b notready serving terminating",
				"10.0.0.3@n1 notready serving terminating",
			},
			nil, anywhere,
		},
		{
			"a terminating endpoint in this zone is not preferred to a ready one elsewhere",
			[]string{"10.0.0.1@n2 zone=a notready serving terminating", "10.0.0.2@n2 zone=b"},
			nil,
			"forward 10.0.0.2:8080",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := nodeN1()
			if test.node != nil {
				node.Node = test.node
			}
			view := service.Resolve(input(webService(), sliceOf("a", test.endpoints...)), node, service.Config{})
			wantLines(t, view, "10.96.0.10:80/TCP any "+test.want)
		})
	}
	t.Run("the Local set ignores them", func(t *testing.T) {
		view := service.Resolve(input(webService(internalLocal), sliceOf("a", "10.0.0.1@n2 zone=a", "10.0.0.3@n1 zone=b")), nodeN1(), service.Config{})
		wantLines(t, view, "10.96.0.10:80/TCP any forward 10.0.0.3:8080")
	})
	t.Run("they are decided per port", func(t *testing.T) {
		s := webService(func(s *messages.Service) {
			s.Ports = append(s.Ports, &messages.ServicePort{Name: "admin", Protocol: tcp, Port: 81})
		})
		admin := sliceOf("b", "10.0.0.1@n2", "10.0.0.2@n2")
		admin.Ports[0].Name, admin.Ports[0].Port = "admin", 9090
		view := service.Resolve(input(s, sliceOf("a", "10.0.0.1@n2 zone=a", "10.0.0.2@n2 zone=b"), admin), nodeN1(), service.Config{})
		wantLines(t, view, "10.96.0.10:80/TCP any forward 10.0.0.1:8080", "10.96.0.10:81/TCP any forward 10.0.0.1:9090,10.0.0.2:9090")
	})
}

func TestBackendsKnowWhetherTheyAreLocal(t *testing.T) {
	view := service.Resolve(input(webService(), sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n2", "10.0.0.3")), nodeN1(), service.Config{})
	for i, want := range []bool{true, false, false} {
		if got := view.GetFrontends()[0].GetBackends()[i].GetLocal(); got != want {
			t.Errorf("backend %d: local %t, want %t", i, got, want)
		}
	}
}
