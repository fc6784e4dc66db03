package acceptance_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// TestSemantics runs, under the name of each rule that is easily got wrong, the cases of the
// acceptance file that pin it down.
func TestSemantics(t *testing.T) {
	file := kubetest.Load(t)
	for _, rule := range []struct {
		name  string
		cases []string
	}{
		{"ports are joined by name and protocol, the number is the slice's", []string{
			"unnamed-port", "port-protocol-mismatch", "slice-port-number-nil-ignored", "one-slice-two-ports", "named-targetport-different-numbers",
			"renumber-slice-port", "rename-slice-port", "selectorless-service-two-ips-two-slices",
		}},
		{"cluster set: ready, or serving and terminating when none is ready", []string{
			"cluster-some-ready", "cluster-endpoints-not-ready", "cluster-all-terminating-serving", "serving-but-not-ready-not-terminating-unusable",
			"conditions-nil-means-ready", "single-endpoint-nothing-set-true",
		}},
		{"local set: by itself", []string{
			"itp-local-terminating-local-fallback", "itp-local-terminating-remote-drop", "conflicting-topology-and-locality", "itp-local-multiple-local",
		}},
		{"reject where there is no endpoint, drop where none is here", []string{
			"no-slices-reject", "itp-local-empty", "itp-local-none-local", "etp-local-terminating-remote-only", "etp-local-no-usable",
			"both-policies-no-endpoints-at-all", "itp-local-etp-local-all-remote",
		}},
		{"external policy Local: remote clients and pods of this node", []string{
			"etp-local-ready-exist", "external-policy-local-all-kinds", "itp-local-etp-local-some-local", "etp-local-ignored-without-external",
		}},
		{"hints: node, then zone, only when complete", []string{
			"zone-hints-used", "node-hints-ignored-if-one-unhinted", "node-hints-fall-back-to-zone", "node-and-zone-no-match", "zone-label-missing",
			"zone-label-empty", "unready-endpoint-without-hint-does-not-disable", "terminating-fallback-ignores-hints", "zone-label-changes",
			"zone-hints-etp-local-ignores-topology", "zone-hints-itp-local-ignores-topology",
		}},
		{"source ranges before anything else", []string{
			"lb-source-ranges", "lb-source-range-zero-means-open", "lb-source-ranges-do-not-guard-external-ips", "lb-ipv6-range-does-not-restrict-ipv4",
		}},
		{"ipMode Proxy", []string{"lb-ipmode-proxy", "lb-ipmode-vip", "lb-ipmode-nil", "lb-hostname-only"}},
		{"labels service-proxy-name and headless", []string{"service-proxy-name-toggled", "headless-ignored"}},
		{"publishNotReadyAddresses is not read", []string{"publish-not-ready-spec-field-not-read", "evicted-pods-no-endpoints"}},
		{"several protocols on one port", []string{"clusterip-general", "same-port-two-protocols-then-one"}},
		{"SCTP is never UDP", []string{"sctp-service", "clusterip-general"}},
		{"slices of FQDNs and of the other family", []string{
			"fqdn-slice-ignored", "ipv6-slice-ignored-for-ipv4-service", "dual-stack-only-ipv4-endpoints", "legacy-no-ipfamilies",
		}},
		{"slices that overlap", []string{
			"two-overlapping-slices-dedup", "duplicate-address-prefers-running", "delete-one-of-two-identical-slices", "endpoint-moves-between-slices",
			"same-ip-two-ports-both-kept", "slices-of-other-services-not-mixed",
		}},
		{"a service is retyped or comes back under its name", []string{"externalname-to-clusterip-and-back", "incremental-add-delete-noop", "service-before-endpoints"}},
		{"session affinity", []string{"affinity-custom-timeout", "affinity-switch"}},
		{"health-check node ports", []string{"hc-local-ready", "hc-counts-ips-not-ports", "hc-no-local-endpoints", "hc-only-terminating-and-unready"}},
	} {
		t.Run(rule.name, func(t *testing.T) {
			for _, name := range rule.cases {
				i := slices.IndexFunc(file.Cases, func(c kubetest.Case) bool { return c.Name == name })
				if i < 0 {
					t.Errorf("no case %s", name)
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					newRun(t, &file.Cases[i], vppOwns, newTally(), uint64(i)).do()
				})
			}
		})
	}
}

// connectAt opens a connection of a client through a frontend, and returns the endpoint that it
// comes to.
func (n *node) connectAt(client netip.Addr, at string) netip.Addr {
	n.Helper()
	open, err := n.VPP.Dial(simulator.Packet{
		In: n.places.of(client), Src: netip.AddrPortFrom(client, n.clientPort()), Dst: netip.MustParseAddrPort(at), Proto: simulator.ProtoTCP,
	})
	if err != nil {
		n.Errorf("%s at %s: %v", client, at, err)
		return netip.Addr{}
	}
	return open.Opened().Dst.Addr()
}

// TestAffinityOfAnEndpointThatGoes: the clients of an endpoint that leaves a service with affinity
// are never sent there again. They choose another one at their next connection, and stay there.
func TestAffinityOfAnEndpointThatGoes(t *testing.T) {
	n := newCluster(t)
	s := serviceSpec{name: "sticky", ip: "10.96.1.1", nodePort: 30001, affinity: 10800}
	goes, stays := localPod(0), []netip.Addr{localPod(1), remotePod(0)}
	n.apply(s, heldPort, append([]netip.Addr{goes}, stays...)...)
	n.Start()
	n.settled()
	var clients []netip.Addr
	for i := range 30 {
		clients = append(clients, netip.AddrFrom4([4]byte{198, 51, 100, byte(1 + i)}))
	}
	clients = append(clients, localPod(10), localPod(11))
	for _, at := range []string{s.ip + ":80", fmt.Sprint(nodeAddress, ":", s.nodePort)} {
		homes, abandoned := map[netip.Addr]netip.Addr{}, 0
		n.apply(s, heldPort, append([]netip.Addr{goes}, stays...)...)
		n.settled()
		for _, client := range clients {
			homes[client] = n.connectAt(client, at)
			if homes[client] == goes {
				abandoned++
			}
			for range 3 {
				if home := n.connectAt(client, at); home != homes[client] {
					t.Errorf("%s: %s is at %s, then at %s", at, client, homes[client], home)
				}
			}
		}
		if abandoned == 0 {
			t.Fatalf("%s: no endpoint is at %s", at, goes)
		}
		n.apply(s, heldPort, stays...)
		n.settled()
		moved := 0
		for _, client := range clients {
			home := n.connectAt(client, at)
			if !slices.Contains(stays, home) {
				t.Errorf("%s: %s is sent to %s, which has gone", at, client, home)
			}
			if homes[client] != goes && homes[client] != home {
				moved++
			}
			for range 3 {
				if again := n.connectAt(client, at); again != home {
					t.Errorf("%s: %s is at %s, then at %s", at, client, home, again)
				}
			}
		}
		t.Logf("%s: %d of %d clients lost their endpoint; %d others chose again", at, abandoned, len(clients), moved)
	}
}

// TestRenamedServices: a service gives its address to another name, in one step, in two, and with
// both there for a while.
func TestRenamedServices(t *testing.T) {
	before := serviceSpec{name: "before", ip: "10.96.1.1", nodePort: 30001, created: 1}
	after := before
	after.name, after.created = "after", 2
	remove := func(store *kube.Store) {
		store.Delete("Service", "default/before")
		store.Delete("EndpointSlice", "default/before-1")
	}
	add := func(store *kube.Store) {
		store.Set(after.service(), nil)
		store.Set(after.slice(heldPort, localPod(1)), nil)
	}
	for name, steps := range map[string][]func(*kube.Store){
		"at once":                    {func(store *kube.Store) { remove(store); add(store) }},
		"the old one goes first":     {remove, add},
		"the new one is there first": {add, remove},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newCluster(t)
			n.apply(before, heldPort, localPod(0))
			n.Start()
			n.settled()
			for i, step := range steps {
				n.Source.Change(step)
				n.settled()
				if both := name == "the new one is there first" && i == 0; both {
					if got := n.connectAt(remoteClient, "10.96.1.1:80"); got != localPod(0) {
						t.Errorf("while both are there, a client comes to %s, want that of the older one", got)
					}
				}
			}
			for _, at := range []string{"10.96.1.1:80", nodeAddress + ":30001"} {
				if got := n.connectAt(remoteClient, at); got != localPod(1) {
					t.Errorf("%s leads to %s, want %s", at, got, localPod(1))
				}
			}
			n.compareWithRules()
			n.compareWithStatus()
		})
	}
}

// remoteClient is a client outside the cluster.
var remoteClient = netip.AddrFrom4([4]byte{198, 51, 100, 7})

// TestRetypedAndRecreatedServices: the rows follow. A connection survives while a service of this
// node has its endpoint, although VPP would delete the sessions to it with each row.
func TestRetypedAndRecreatedServices(t *testing.T) {
	n := newCluster(t)
	spec := serviceSpec{name: "web", ip: "10.96.1.1"}
	n.apply(spec, heldPort, localPod(0))
	n.Start()
	n.settled()
	for _, step := range []struct {
		name   string
		change func(*messages.Service)
		rows   []string
		cut    bool
	}{
		{"NodePort", func(s *messages.Service) { s.Type, s.Ports[0].NodePort = messages.ServiceType_NODE_PORT, 30001 }, []string{"10.96.1.1:80/TCP", "192.168.0.2:30001/TCP"}, false},
		{"LoadBalancer", func(s *messages.Service) {
			s.Type, s.LoadBalancer = messages.ServiceType_LOAD_BALANCER, []*messages.LoadBalancerIngress{{Ip: "203.0.113.1"}}
		}, []string{"10.96.1.1:80/TCP", "203.0.113.1:80/TCP"}, false},
		{"ClusterIP", func(*messages.Service) {}, []string{"10.96.1.1:80/TCP"}, false},
		{"another object of the same name and address", func(s *messages.Service) { s.Uid, s.Created = "another", 7 }, []string{"10.96.1.1:80/TCP"}, false},
		{"another port besides", func(s *messages.Service) {
			s.Ports = append(s.Ports, &messages.ServicePort{Name: "udp", Protocol: messages.Protocol_UDP, Port: 80})
		}, []string{"10.96.1.1:80/TCP"}, false},
		{"ExternalName", func(s *messages.Service) { s.Type, s.ClusterIps = messages.ServiceType_EXTERNAL_NAME, nil }, nil, true},
		{"ClusterIP again", func(*messages.Service) {}, []string{"10.96.1.1:80/TCP"}, false},
		{"another address", func(s *messages.Service) { s.ClusterIps = []string{"10.96.1.2"} }, []string{"10.96.1.2:80/TCP"}, false},
		{"headless", func(s *messages.Service) { s.ClusterIps, s.Headless = []string{"None"}, true }, nil, true},
	} {
		s := spec.service()
		step.change(s)
		var open *simulator.Connection
		if _, served := n.rows()["10.96.1.1:80/TCP"]; served {
			open = n.dialTo(spec.ip, localPod(0))
		}
		n.Source.Change(func(store *kube.Store) { store.Set(s, nil) })
		n.settled()
		var got []string
		for frontend := range n.rows() {
			got = append(got, frontend)
		}
		if slices.Sort(got); !slices.Equal(got, step.rows) {
			t.Errorf("%s: rows %q, want %q", step.name, got, step.rows)
		}
		if open != nil {
			if err := open.Exchange(); (err != nil) != step.cut {
				t.Errorf("%s: the connection: %v, want cut: %t", step.name, err, step.cut)
			}
		}
		if uid := n.Statuses()["default/web"].GetView().GetUid(); uid != s.GetUid() {
			t.Errorf("%s: the status is of object %q, want %q", step.name, uid, s.GetUid())
		}
		for _, f := range service.Resolve(n.Source.Services()["default/web"], n.context, n.Serving).GetFrontends() {
			if f.GetAction() == messages.Action_ACTION_FORWARD && !slices.Contains(got, service.FrontendText(f)) {
				t.Errorf("%s: no row of %s", step.name, service.FrontendText(f))
			}
		}
	}
}
