package service_test

import (
	"net/netip"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// FuzzResolve: for any message Resolve does not panic, does not change its input, keeps the
// promises of the view, and gives the same answer twice. All other functions of the package accept
// its answer.
func FuzzResolve(f *testing.F) {
	s := webService(dualStack, nodePort(30080), loadBalancer("1.2.3.4", "2001:db8::4"), ranges("192.168.0.0/16", "2001:db8::/32"), externalLocal)
	s.HealthCheckNodePort, s.AffinitySeconds = 31000, 60
	s.Ports = append(s.Ports, &messages.ServicePort{Name: "dns", Protocol: udp, Port: 53})
	six := sliceOf("b", "fd00:10::1@n1 zone=a", "fd00:10::2@n2 notready serving terminating")
	six.Ports = append(six.Ports, &messages.EndpointPort{Name: "dns", Protocol: udp, Port: 5353})
	in, err := proto.Marshal(input(s, sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n2"), six))
	if err != nil {
		f.Fatal(err)
	}
	node, err := proto.Marshal(nodeN1("192.168.0.2", "2001:db8::2"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(in, node, "all", true)
	f.Add([]byte{}, []byte{}, "", false)
	f.Fuzz(func(t *testing.T, inputBytes, nodeBytes []byte, nodePorts string, masqueradeAll bool) {
		in, node := &messages.ServiceInput{}, &messages.NodeContext{}
		if proto.Unmarshal(inputBytes, in) != nil || proto.Unmarshal(nodeBytes, node) != nil {
			return
		}
		before, nodeBefore := proto.Clone(in), proto.Clone(node)
		cfg := service.Config{MasqueradeAll: masqueradeAll, ClusterCIDRs: []netip.Prefix{{}, netip.MustParsePrefix("10.0.0.0/8")}}
		if addresses, err := service.ParseNodePortAddresses([]string{nodePorts}); err == nil {
			cfg.NodePortAddresses = addresses
		}
		view := service.Resolve(in, node, cfg)
		if problem := invariantBroken(view); problem != "" {
			t.Fatal(problem)
		}
		again := service.Resolve(in, node, cfg)
		if !proto.Equal(view, again) || service.Hash(view) != service.Hash(again) {
			t.Fatal("two runs differ")
		}
		if !proto.Equal(before, in) || !proto.Equal(nodeBefore, node) {
			t.Fatal("the input was modified")
		}
		table := service.NewTable([]*messages.ServiceView{view, again}, node, cfg)
		for _, row := range view.GetFrontends() {
			where, protocol, err := service.ParseFrontendText(service.FrontendText(row))
			if err != nil {
				t.Fatal(err)
			}
			if v := table.Verdict(service.Packet{Source: where.Addr(), Destination: where, Protocol: protocol}); !v.Service {
				t.Fatalf("%s is no service traffic", service.FrontendText(row))
			}
		}
	})
}
