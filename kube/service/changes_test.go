package service_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

func TestChangedFrontends(t *testing.T) {
	resolve := func(node *messages.NodeContext, s *messages.Service, slices ...*messages.EndpointSlice) []*messages.Frontend {
		return service.Resolve(input(s, slices...), node, detect()).GetFrontends()
	}
	const vip, port = "10.96.0.10:80/TCP", "192.168.0.2:30080/TCP"
	base := resolve(nodeN1(), webService(nodePort(30080)), sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n2"))
	for _, test := range []struct {
		name    string
		current []*messages.Frontend
		want    []string
	}{
		{"the same", base, nil},
		{"endpoints in another slice", resolve(nodeN1(), webService(nodePort(30080)), sliceOf("b", "10.0.0.2@n2"), sliceOf("c", "10.0.0.1@n1")), nil},
		{"another node name on an endpoint", resolve(nodeN1(), webService(nodePort(30080)), sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n3")), nil},
		{"another name of the port", func() []*messages.Frontend {
			s, slice := webService(nodePort(30080)), sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n2")
			s.Ports[0].Name, slice.Ports[0].Name = "www", "www"
			return resolve(nodeN1(), s, slice)
		}(), nil},
		{"an endpoint came", resolve(nodeN1(), webService(nodePort(30080)), sliceOf("a", "10.0.0.1", "10.0.0.2", "10.0.0.3")), []string{vip, port}},
		{"a frontend went", resolve(nodeN1(), webService(), sliceOf("a", "10.0.0.1", "10.0.0.2")), []string{port}},
		{"a policy changed", resolve(nodeN1(), webService(nodePort(30080), externalLocal), sliceOf("a", "10.0.0.1@n1", "10.0.0.2")), []string{port}},
		{"affinity came", resolve(nodeN1(), webService(nodePort(30080), func(s *messages.Service) { s.AffinitySeconds = 9 }), sliceOf("a", "10.0.0.1", "10.0.0.2")), []string{vip, port}},
		{"everything went", nil, []string{vip, port}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, service.Changed(base, test.current)); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, service.Changed(test.current, base)); diff != "" {
				t.Errorf("changed backwards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangedSeesSourceRangesAndMasquerading(t *testing.T) {
	row := func(change func(*messages.Frontend)) []*messages.Frontend {
		r := &messages.Frontend{Address: "1.2.3.4", Port: 80, Protocol: tcp}
		change(r)
		return []*messages.Frontend{r}
	}
	base := row(func(*messages.Frontend) {})
	for name, other := range map[string][]*messages.Frontend{
		"allow":      row(func(r *messages.Frontend) { r.AllowSources = []string{"1.0.0.0/8"} }),
		"masquerade": row(func(r *messages.Frontend) { r.MasqueradeFrom = []string{service.ClassNode} }),
		"action":     row(func(r *messages.Frontend) { r.Action = messages.Action_ACTION_DROP }),
		"from":       row(func(r *messages.Frontend) { r.From = messages.ClientClass_FROM_LOCAL }),
		"backends":   row(func(r *messages.Frontend) { r.Backends = []*messages.Backend{{Address: "10.0.0.1", Port: 1}} }),
	} {
		if got := service.Changed(base, other); len(got) != 1 {
			t.Errorf("%s: changed %v", name, got)
		}
	}
}
