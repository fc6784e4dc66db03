package service_test

import (
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// TestFrontends: endpoint .1 is on this node and .2 on another, both ready, unless the case has its
// own endpoints.
func TestFrontends(t *testing.T) {
	const (
		both    = "forward 10.0.0.1:8080,10.0.0.2:8080"
		here    = "forward 10.0.0.1:8080"
		cluster = "10.96.0.10:80/TCP any " + both + " masq=node,remote"
		all     = " masq=pod,node,remote"
	)
	for _, test := range []struct {
		name    string
		service *messages.Service
		slices  []*messages.EndpointSlice
		want    []string
	}{
		{"a cluster IP has one row", webService(), nil, []string{cluster}},
		{"a node port is served whatever the type says", webService(func(s *messages.Service) { s.Ports[0].NodePort = 30080 }), nil, []string{
			cluster, "192.168.0.2:30080/TCP any " + both + all,
		}},
		{"external IPs are frontends of every type", webService(externalIPs("1.2.3.4", "5.6.7.8")), nil, []string{
			"1.2.3.4:80/TCP any " + both + all, cluster, "5.6.7.8:80/TCP any " + both + all,
		}},
		{"a load-balancer IP with ipMode Proxy is not captured", webService(loadBalancer("1.2.3.4", "5.6.7.8"), func(s *messages.Service) {
			s.LoadBalancer[0].Proxy = true
		}), nil, []string{cluster, "5.6.7.8:80/TCP any " + both + all}},
		{"Local external policy: remote clients stay here, local ones are short-circuited", webService(nodePort(30080), externalLocal), nil, []string{
			cluster, "192.168.0.2:30080/TCP local " + both + " masq=node", "192.168.0.2:30080/TCP remote " + here,
		}},
		{
			"Local external policy without a local endpoint: drop for remote clients only",
			webService(nodePort(30080), externalLocal),
			[]*messages.EndpointSlice{sliceOf("a", "10.0.0.2@n2")},
			[]string{
				"10.96.0.10:80/TCP any forward 10.0.0.2:8080 masq=node,remote",
				"192.168.0.2:30080/TCP local forward 10.0.0.2:8080 masq=node", "192.168.0.2:30080/TCP remote drop",
			},
		},
		{
			"Local external policy without any endpoint: one row, reject",
			webService(nodePort(30080), externalLocal),
			[]*messages.EndpointSlice{sliceOf("a")},
			[]string{"10.96.0.10:80/TCP any reject", "192.168.0.2:30080/TCP any reject"},
		},
		{"Local external policy of a pure ClusterIP service means nothing", webService(externalLocal), nil, []string{cluster}},
		{"Local external policy of a ClusterIP service with external IPs counts", webService(externalIPs("1.2.3.4"), externalLocal), nil, []string{
			"1.2.3.4:80/TCP local " + both + " masq=node", "1.2.3.4:80/TCP remote " + here, cluster,
		}},
		{"both policies Local", webService(nodePort(30080), internalLocal, externalLocal), nil, []string{
			"10.96.0.10:80/TCP any " + here + " masq=node,remote",
			"192.168.0.2:30080/TCP local " + both + " masq=node", "192.168.0.2:30080/TCP remote " + here,
		}},
		{"internal policy Local leaves external frontends alone", webService(nodePort(30080), internalLocal), nil, []string{
			"10.96.0.10:80/TCP any " + here + " masq=node,remote", "192.168.0.2:30080/TCP any " + both + all,
		}},
		{"affinity is on every forwarding row", webService(nodePort(30080), externalLocal, func(s *messages.Service) { s.AffinitySeconds = 60 }), nil, []string{
			"10.96.0.10:80/TCP any " + both + " affinity masq=node,remote",
			"192.168.0.2:30080/TCP local " + both + " affinity masq=node", "192.168.0.2:30080/TCP remote " + here + " affinity",
		}},
		{
			"affinity is on forwarding rows only",
			webService(nodePort(30080), externalLocal, func(s *messages.Service) { s.AffinitySeconds = 60 }),
			[]*messages.EndpointSlice{sliceOf("a", "10.0.0.2@n2 notready")},
			[]string{"10.96.0.10:80/TCP any reject", "192.168.0.2:30080/TCP any reject"},
		},
		{
			"SCTP stays SCTP",
			webService(func(s *messages.Service) { s.Ports[0].Protocol = messages.Protocol_SCTP }),
			[]*messages.EndpointSlice{func() *messages.EndpointSlice {
				slice := sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n2")
				slice.Ports[0].Protocol = messages.Protocol_SCTP
				return slice
			}()},
			[]string{"10.96.0.10:80/SCTP any " + both + " masq=node,remote"},
		},
		{"one port may reject while another forwards", webService(func(s *messages.Service) {
			s.Ports = append(s.Ports, &messages.ServicePort{Name: "admin", Protocol: tcp, Port: 81})
		}), nil, []string{cluster, "10.96.0.10:81/TCP any reject"}},
		{"an external IP that is also the load-balancer IP exists once", webService(loadBalancer("1.2.3.4"), externalIPs("1.2.3.4", "1.2.3.4")), nil, []string{
			"1.2.3.4:80/TCP any " + both + all, cluster,
		}},
		{"source ranges guard a load-balancer IP even if it is an external IP too", webService(
			loadBalancer("1.2.3.4"), externalIPs("1.2.3.4"), ranges("203.0.113.0/24"), externalLocal,
		), nil, []string{
			"1.2.3.4:80/TCP local " + both + " masq=node allow=203.0.113.0/24",
			"1.2.3.4:80/TCP remote " + here + " allow=203.0.113.0/24", cluster,
		}},
		{"an external IP that is the cluster IP is external traffic", webService(externalIPs("10.96.0.10")), nil, []string{
			"10.96.0.10:80/TCP any " + both + all,
		}},
		{"an external IP that is the cluster IP, both policies Local", webService(externalIPs("10.96.0.10"), internalLocal, externalLocal), nil, []string{
			"10.96.0.10:80/TCP local " + both + " masq=node", "10.96.0.10:80/TCP remote " + here,
		}},
		{"an external IP that is the cluster IP, internal policy Local", webService(externalIPs("10.96.0.10"), internalLocal), nil, []string{
			"10.96.0.10:80/TCP any " + both + all,
		}},
		{
			"a load-balancer IP that is the cluster IP, external policy Local without a local endpoint",
			webService(loadBalancer("10.96.0.10"), externalLocal, ranges("203.0.113.0/24")),
			[]*messages.EndpointSlice{sliceOf("a", "10.0.0.2@n2")},
			[]string{
				"10.96.0.10:80/TCP local forward 10.0.0.2:8080 masq=node allow=203.0.113.0/24", "10.96.0.10:80/TCP remote drop allow=203.0.113.0/24",
			},
		},
		{"a load-balancer IP with ipMode Proxy that is the cluster IP", webService(loadBalancer("10.96.0.10"), externalLocal, func(s *messages.Service) {
			s.LoadBalancer[0].Proxy = true
		}), nil, []string{cluster}},
		{"of two ports with one number the first wins", webService(func(s *messages.Service) {
			s.Ports = append(s.Ports, &messages.ServicePort{Name: "again", Protocol: tcp, Port: 80})
		}), nil, []string{cluster}},
		{"the same port with two protocols", webService(func(s *messages.Service) {
			s.Ports = append(s.Ports, &messages.ServicePort{Name: "http", Protocol: udp, Port: 80})
		}), nil, []string{cluster, "10.96.0.10:80/UDP any reject"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.slices == nil {
				test.slices = []*messages.EndpointSlice{sliceOf("a", "10.0.0.1@n1", "10.0.0.2@n2")}
			}
			wantLines(t, service.Resolve(input(test.service, test.slices...), nodeN1(), detect()), test.want...)
		})
	}
}

func TestMasqueradeOfClusterIPs(t *testing.T) {
	cidr := func(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }
	for _, test := range []struct {
		name string
		cfg  service.Config
		want string
	}{
		{"without a detector: no client", service.Config{}, ""},
		{"with a detector: every client but local pods", service.Config{ClusterCIDRs: cidr("10.0.0.0/8")}, " masq=node,remote"},
		{"a detector of the other family does not help", service.Config{ClusterCIDRs: cidr("fd00::/8")}, ""},
		{"masquerade all: every client", service.Config{MasqueradeAll: true}, " masq=pod,node,remote"},
		{"masquerade all with a detector: every client", service.Config{MasqueradeAll: true, ClusterCIDRs: cidr("10.0.0.0/8")}, " masq=pod,node,remote"},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := service.Resolve(input(webService(), sliceOf("a", "10.0.0.1@n1")), nodeN1(), test.cfg)
			wantLines(t, view, "10.96.0.10:80/TCP any forward 10.0.0.1:8080"+test.want)
		})
	}
}

func TestFamiliesAreIndependent(t *testing.T) {
	s := webService(dualStack, nodePort(30080), externalLocal, loadBalancer("1.2.3.4", "2001:db8::4"), ranges("203.0.113.0/24"))
	in := input(s, sliceOf("a", "10.0.0.2@n2"), sliceOf("b", "fd00:10::1@n1"))
	view := service.Resolve(in, nodeN1("192.168.0.2", "2001:db8::2"), detect())
	wantLines(t, view,
		"1.2.3.4:80/TCP local forward 10.0.0.2:8080 masq=node allow=203.0.113.0/24",
		"1.2.3.4:80/TCP remote drop allow=203.0.113.0/24",
		"10.96.0.10:80/TCP any forward 10.0.0.2:8080 masq=node,remote",
		"192.168.0.2:30080/TCP local forward 10.0.0.2:8080 masq=node",
		"192.168.0.2:30080/TCP remote drop",
		"[2001:db8::2]:30080/TCP local forward [fd00:10::1]:8080 masq=node",
		"[2001:db8::2]:30080/TCP remote forward [fd00:10::1]:8080",
		"[2001:db8::4]:80/TCP local forward [fd00:10::1]:8080 masq=node",
		"[2001:db8::4]:80/TCP remote forward [fd00:10::1]:8080",
		"[fd00:96::10]:80/TCP any forward [fd00:10::1]:8080 masq=node,remote")
	if view.GetNoLocalIpv4().GetExternal() != 1 || view.GetNoLocalIpv4().GetInternal() != 0 || view.GetNoLocalIpv6() != nil {
		t.Errorf("no local endpoints: %v, %v", view.GetNoLocalIpv4(), view.GetNoLocalIpv6())
	}
}

func TestClusterIPsBelongToTheirFamilies(t *testing.T) {
	for _, test := range []struct {
		name     string
		ips      []string
		families []messages.IPFamily
		want     []string
	}{
		{"by position", []string{"fd00:96::10", "10.96.0.10"}, []messages.IPFamily{v6, v4}, []string{
			"10.96.0.10:80/TCP any reject", "[fd00:96::10]:80/TCP any reject",
		}},
		{"without families the first address decides", []string{"fd00:96::10"}, nil, []string{"[fd00:96::10]:80/TCP any reject"}},
		{"without families only the first address counts", []string{"10.96.0.10", "fd00:96::10"}, nil, []string{"10.96.0.10:80/TCP any reject"}},
		{"a family without an address is not served", []string{"10.96.0.10"}, []messages.IPFamily{v4, v6}, []string{"10.96.0.10:80/TCP any reject"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := webService(func(s *messages.Service) { s.ClusterIps, s.IpFamilies = test.ips, test.families })
			wantLines(t, service.Resolve(input(s), nodeN1("192.168.0.2", "2001:db8::2"), detect()), test.want...)
		})
	}
}

func TestExternalFrontendsExistOnlyInTheFamiliesOfTheService(t *testing.T) {
	s := webService(externalIPs("2001:db8::4", "1.2.3.4"), nodePort(30080))
	wantLines(t, service.Resolve(input(s), nodeN1("2001:db8::2", "192.168.0.2"), detect()),
		"1.2.3.4:80/TCP any reject", "10.96.0.10:80/TCP any reject", "192.168.0.2:30080/TCP any reject")
}

// TestNoLocalEndpointsCounters: the counters of one family of a service with one port.
func TestNoLocalEndpointsCounters(t *testing.T) {
	remote, local := sliceOf("a", "10.0.0.2@n2"), sliceOf("a", "10.0.0.1@n1")
	for _, test := range []struct {
		name               string
		service            *messages.Service
		slice              *messages.EndpointSlice
		internal, external uint32
	}{
		{"both policies Local, endpoints elsewhere", webService(nodePort(30080), internalLocal, externalLocal), remote, 1, 1},
		{"both policies Local, endpoints here", webService(nodePort(30080), internalLocal, externalLocal), local, 0, 0},
		{"a reject is not counted", webService(nodePort(30080), internalLocal, externalLocal), sliceOf("a"), 0, 0},
		{"Cluster policies are not counted", webService(nodePort(30080)), remote, 0, 0},
		{"internal only", webService(internalLocal), remote, 1, 0},
		{"external only", webService(nodePort(30080), externalLocal), remote, 0, 1},
		{"external policy that has no effect is not counted", webService(externalLocal), remote, 0, 0},
		{"a load balancer without any address is counted although nothing drops", webService(loadBalancer(), externalLocal), local, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			view := service.Resolve(input(test.service, test.slice), nodeN1(), detect())
			if got := view.GetNoLocalIpv4(); got.GetInternal() != test.internal || got.GetExternal() != test.external {
				t.Errorf("got %v, want internal %d, external %d", got, test.internal, test.external)
			}
			if view.GetNoLocalIpv6() != nil {
				t.Errorf("IPv6: %v", view.GetNoLocalIpv6())
			}
		})
	}
}
