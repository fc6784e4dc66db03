package service_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// genEndpoint draws an endpoint from few nodes, zones and conditions, so that all rules are used
// together.
func genEndpoint(t *rapid.T, address string) *messages.Endpoint {
	names := func(label, prefix string) []string {
		var list []string
		for range rapid.IntRange(0, 3).Draw(t, label+" count") / 2 {
			list = append(list, prefix+string(rapid.SampledFrom([]rune("123")).Draw(t, label)))
		}
		return list
	}
	return &messages.Endpoint{
		Address:     address,
		Ready:       rapid.Bool().Draw(t, "ready"),
		Serving:     rapid.Bool().Draw(t, "serving"),
		Terminating: rapid.Bool().Draw(t, "terminating"),
		Node:        rapid.SampledFrom([]string{"", "n1", "n1", "n2"}).Draw(t, "node"),
		ZoneHints:   names("zone hint", "z"),
		NodeHints:   names("node hint", "n"),
	}
}

// genService draws a service with one to three ports, in one or both families.
func genService(t *rapid.T) *messages.Service {
	s := &messages.Service{
		Namespace: "default", Name: "web", Uid: "0af3", Created: 5,
		Type:            messages.ServiceType(rapid.IntRange(0, 2).Draw(t, "type")),
		InternalPolicy:  messages.TrafficPolicy(rapid.IntRange(0, 1).Draw(t, "internal policy")),
		ExternalPolicy:  messages.TrafficPolicy(rapid.IntRange(0, 1).Draw(t, "external policy")),
		AffinitySeconds: rapid.SampledFrom([]uint32{0, 60}).Draw(t, "affinity"),
		ClusterIps:      []string{"10.96.0.10"}, IpFamilies: []messages.IPFamily{v4},
	}
	if rapid.Bool().Draw(t, "dual stack") {
		s.ClusterIps, s.IpFamilies = append(s.ClusterIps, "fd00:96::10"), append(s.IpFamilies, v6)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "ports") {
		port := &messages.ServicePort{
			Name: fmt.Sprintf("p%d", i), Port: uint32(80 + i),
			Protocol: rapid.SampledFrom([]messages.Protocol{tcp, udp, messages.Protocol_SCTP}).Draw(t, "protocol"),
		}
		if rapid.Bool().Draw(t, "node port") {
			port.NodePort = uint32(30080 + i)
		}
		s.Ports = append(s.Ports, port)
	}
	s.ExternalIps = rapid.SampledFrom([][]string{nil, nil, {"1.2.3.4"}, {"1.2.3.4", "2001:db8::4"}, {"10.96.0.10"}}).Draw(t, "external IPs")
	if rapid.Bool().Draw(t, "ingress") {
		s.LoadBalancer = []*messages.LoadBalancerIngress{
			{Ip: rapid.SampledFrom([]string{"5.6.7.8", "5.6.7.8", "10.96.0.10"}).Draw(t, "ingress IP"), Proxy: rapid.Bool().Draw(t, "proxy")}, {Ip: "2001:db8::8"},
		}
	}
	s.HealthCheckNodePort = rapid.SampledFrom([]uint32{0, 31000}).Draw(t, "health check")
	return s
}

// genInput draws a service with slices. With overlap, several slices may have the same ip:port and
// contradict each other.
func genInput(t *rapid.T, overlap bool) *messages.ServiceInput {
	in := &messages.ServiceInput{Key: "default/web", Service: genService(t)}
	next := 0
	for i := range rapid.IntRange(0, 4).Draw(t, "slices") {
		slice := &messages.EndpointSlice{
			Namespace: "default", Name: fmt.Sprintf("web-%d", i), Generation: int64(rapid.IntRange(1, 2).Draw(t, "generation")),
			Service:  rapid.SampledFrom([]string{"web", "web", "web", "api"}).Draw(t, "service"),
			Family:   rapid.SampledFrom([]messages.IPFamily{v4, v4, v6}).Draw(t, "family"),
			Headless: rapid.IntRange(0, 9).Draw(t, "headless") == 0,
		}
		for range rapid.IntRange(0, 5).Draw(t, "endpoints") {
			if overlap {
				next = rapid.IntRange(0, 3).Draw(t, "address")
			} else {
				next++
			}
			slice.Endpoints = append(slice.Endpoints, genEndpoint(t, uniqueAddress(slice.GetFamily(), next)))
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "slice ports") {
			slice.Ports = append(slice.Ports, &messages.EndpointPort{
				Name:     fmt.Sprintf("p%d", rapid.IntRange(0, 2).Draw(t, "slice port")),
				Protocol: rapid.SampledFrom([]messages.Protocol{tcp, udp, messages.Protocol_SCTP}).Draw(t, "slice protocol"),
				Port:     uint32(8080 + n),
			})
		}
		in.Slices = append(in.Slices, slice)
	}
	return in
}

func genNode(t *rapid.T) *messages.NodeContext {
	addresses := rapid.SampledFrom([][]string{nil, {"192.168.0.2"}, {"192.168.0.2", "2001:db8::2", "192.168.1.2"}}).Draw(t, "own addresses")
	return &messages.NodeContext{
		Node:      &messages.Node{Addresses: addresses[:min(len(addresses), 2)], Name: rapid.SampledFrom([]string{"n1", "n1", ""}).Draw(t, "own name"), Zone: rapid.SampledFrom([]string{"z1", ""}).Draw(t, "own zone")},
		Addresses: addresses,
	}
}

func genConfig(t *rapid.T) service.Config {
	cfg := service.Config{MasqueradeAll: rapid.Bool().Draw(t, "masquerade all")}
	for _, text := range []string{"10.0.0.0/8", "fd00:10::/64"} {
		if rapid.Bool().Draw(t, "detector "+text) {
			cfg.ClusterCIDRs = append(cfg.ClusterCIDRs, netip.MustParsePrefix(text))
		}
	}
	return cfg
}

func TestResolveAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, node, cfg := genInput(t, false), genNode(t), genConfig(t)
		view := service.Resolve(in, node, cfg)
		if problem := invariantBroken(view); problem != "" {
			t.Fatal(problem)
		}
		got := []kubetest.Row{}
		for _, row := range view.GetFrontends() {
			got = append(got, render(row))
		}
		slices.SortFunc(got, compareRows)
		if diff := cmp.Diff(model(in, node, cfg), got); diff != "" {
			t.Fatalf("rows (-model +got):\n%s", diff)
		}
	})
}

func TestResolveDoesNotDependOnTheOrderOfSlicesAndEndpoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, node, cfg := genInput(t, true), genNode(t), genConfig(t)
		first := service.Resolve(in, node, cfg)
		if problem := invariantBroken(first); problem != "" {
			t.Fatal(problem)
		}
		shuffled := &messages.ServiceInput{Key: in.GetKey(), Service: in.GetService(), Slices: slices.Clone(in.GetSlices())}
		shuffleInput(shuffled, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		second := service.Resolve(shuffled, node, cfg)
		if diff := cmp.Diff(first, second, protocmp.Transform()); diff != "" {
			t.Fatalf("view (-first +shuffled):\n%s", diff)
		}
		if service.Hash(first) != service.Hash(second) {
			t.Fatal("two equal views have different hashes")
		}
	})
}

func TestResolveIsNotInfluencedByUnrelatedSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, node, cfg := genInput(t, true), genNode(t), genConfig(t)
		want := service.Resolve(in, node, cfg)
		for i, spoil := range []func(*messages.EndpointSlice){
			func(s *messages.EndpointSlice) { s.Service = "other" },
			func(s *messages.EndpointSlice) { s.Service = "" },
			func(s *messages.EndpointSlice) { s.Namespace = "other" },
			func(s *messages.EndpointSlice) { s.Headless = true },
			func(s *messages.EndpointSlice) { s.Family = messages.IPFamily_FAMILY_UNSPECIFIED },
		} {
			unrelated := genInput(t, true).GetSlices()
			for _, slice := range unrelated {
				spoil(slice)
			}
			more := &messages.ServiceInput{Key: in.GetKey(), Service: in.GetService(), Slices: append(unrelated, in.GetSlices()...)}
			if got := service.Resolve(more, node, cfg); !proto.Equal(want, got) {
				t.Fatalf("%d: unrelated slices change the view:\n%s", i, cmp.Diff(want, got, protocmp.Transform()))
			}
		}
	})
}

func TestResolveLeavesItsInputAloneAndRepeatsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, node, cfg := genInput(t, true), genNode(t), genConfig(t)
		before := proto.Clone(in)
		first, second := service.Resolve(in, node, cfg), service.Resolve(in, node, cfg)
		if !proto.Equal(before, in) {
			t.Fatalf("input (-before +after):\n%s", cmp.Diff(before, proto.Message(in), protocmp.Transform()))
		}
		if !proto.Equal(first, second) {
			t.Fatal("two runs differ")
		}
	})
}

// TestHashAgreesWithEquality compares views that differ in a few endpoints or not at all.
func TestHashAgreesWithEquality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, node := genInput(t, true), genNode(t)
		first := service.Resolve(in, node, genConfig(t))
		second := service.Resolve(in, genNode(t), genConfig(t))
		if proto.Equal(first, second) != (service.Hash(first) == service.Hash(second)) {
			t.Fatal("Hash disagrees with proto.Equal")
		}
	})
}

// TestPacketsFollowRows: for any packet to a frontend, the verdict comes from the one row for its
// client.
func TestPacketsFollowRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, node, cfg := genInput(t, true), genNode(t), genConfig(t)
		view := service.Resolve(in, node, cfg)
		table := service.NewTable([]*messages.ServiceView{view}, node, cfg)
		for _, row := range view.GetFrontends() {
			source := netip.MustParseAddr(rapid.SampledFrom([]string{"10.0.0.9", "192.168.0.2", "203.0.113.1", "fd00:10::9", "2001:db8:5::1"}).Draw(t, "source"))
			class := table.Class(source)
			if row.GetFrom() == messages.ClientClass_FROM_LOCAL && class == service.ClassRemote ||
				row.GetFrom() == messages.ClientClass_FROM_REMOTE && class != service.ClassRemote {
				continue
			}
			where, protocol, err := service.ParseFrontendText(service.FrontendText(row))
			if err != nil {
				t.Fatal(err)
			}
			v := table.Verdict(service.Packet{Source: source, Destination: where, Protocol: protocol})
			if v.Row != row || v.Action != row.GetAction() || len(v.Backends) != len(row.GetBackends()) {
				t.Fatalf("%s from %s: %+v", line(row), source, v)
			}
		}
	})
}
