package mirror

import (
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

func TestSameCluster(t *testing.T) {
	state := func(source, api string, nodes ...string) *identity {
		s := &messages.Snapshot{Node: &messages.NodeInput{Nodes: map[string]*messages.Node{}}}
		if api != "none" {
			s.Services = []*messages.ServiceInput{{Key: apiService, Service: &messages.Service{Uid: api}}}
		}
		for _, uid := range nodes {
			s.Node.Nodes["n"+uid] = &messages.Node{Uid: uid}
		}
		return identify(&messages.Mirror{Source: source, Cluster: clusterOf(s), Snapshot: s})
	}
	for name, tt := range map[string]struct {
		a, b *identity
		want bool
	}{
		"unchanged":                     {state("k", "x", "1", "2"), state("k", "x", "1", "2"), true},
		"all nodes made anew":           {state("k", "x", "1"), state("k", "x", "2"), true},
		"kubernetes made anew":          {state("k", "x", "1", "2"), state("k", "y", "2", "3"), true},
		"kubernetes is not listed":      {state("k", "none", "1"), state("k", "y", "1"), true},
		"all is new":                    {state("k", "x", "1"), state("k", "y", "2"), false},
		"no UIDs, the same place":       {state("files:/a", ""), state("files:/a", ""), true},
		"no UIDs, another place":        {state("files:/a", ""), state("files:/b", ""), false},
		"no UIDs now, the same place":   {state("files:/a", "x", "1"), state("files:/a", ""), true},
		"no UIDs now, another place":    {state("k", "x", "1"), state("files:/a", ""), false},
		"another place, the same UIDs":  {state("k", "x"), state("files:/a", "x"), true},
		"a node without UID proves not": {state("k", "x", ""), state("k", "y", ""), false},
	} {
		if got := tt.a.same(tt.b); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := tt.b.same(tt.a); got != tt.want {
			t.Errorf("%s, the other way: %t", name, got)
		}
	}
}
