package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Names of what the packets cross.
const (
	clients = "pg0" // clients of other nodes enter here
	network = "pg1" // every endpoint is behind it
)

// Numbers of packets.
const (
	oldFlows   = 256
	oldPackets = 200_000
	// newFlows of all measurements of a VPP fit into the 16,384 ports that CNAT has for
	// clients.
	newFlows = 1_500
	// rounds of a measurement: the least counts, because what else the machine does only adds.
	rounds = 3
	// sixServices is how many services are in CNAT.
	sixServices = 100
)

// packetSetup gives VPP the interfaces, before there is an agent.
const packetSetup = `create packet-generator interface pg0
create packet-generator interface pg1
set interface state pg0 up
set interface state pg1 up
set interface ip address pg0 192.168.18.1/24
set interface ip address pg0 fd18::1/64
set interface ip address pg1 192.168.17.1/24
set interface ip address pg1 fd17::1/64
set ip neighbor pg1 192.168.17.2 02:00:00:00:00:02
set ip neighbor pg1 fd17::2 02:00:00:00:00:02
ip route add 10.0.0.0/11 via 192.168.17.2 pg1
ip route add fd01::/64 via fd17::2 pg1`

// sixObject is an IPv6 service. Argument: number from 1 on.
const sixObject = `---
apiVersion: v1
kind: Service
metadata: {namespace: six, name: s%[1]d, uid: six-%[1]d, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  clusterIP: fd10::%[1]x
  clusterIPs: ["fd10::%[1]x"]
  ipFamilies: [IPv6]
  ports: [{name: http, port: 80, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: six, name: s%[1]d-1, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv6
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- {addresses: ["fd01::%[1]x"], conditions: {ready: true}, nodeName: n2}
`

// rangesObject is a service that needs an access list.
const rangesObject = `apiVersion: v1
kind: Service
metadata: {namespace: ranges, name: s, uid: ranges, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  type: LoadBalancer
  clusterIP: 10.111.0.1
  clusterIPs: [10.111.0.1]
  ipFamilies: [IPv4]
  loadBalancerSourceRanges: [192.168.18.0/24]
  ports: [{name: http, port: 80, protocol: TCP}]
status: {loadBalancer: {ingress: [{ip: 172.20.0.1}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: ranges, name: s-1, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.2.1], conditions: {ready: true}, nodeName: n2}
`

// beforeAgent measures the same packets straight to endpoints, without any feature of the agent.
func (n *node) beforeAgent(services int, out *figures) error {
	for line := range strings.Lines(packetSetup) {
		if err := n.command(strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	var six strings.Builder
	for i := range sixServices {
		fmt.Fprintf(&six, sixObject, i+1)
	}
	if err := os.WriteFile(filepath.Join(n.file("objects"), "six.yaml"), []byte(six.String()), 0o600); err != nil {
		return fmt.Errorf("write IPv6 services: %w", err)
	}
	return n.straight("without the agent", services, out)
}

// straight measures packets to endpoints, not to a service.
func (n *node) straight(name string, services int, out *figures) error {
	return errors.Join(
		n.flows("IPv4 "+name, services, 0, out, func(i int) netip.AddrPort {
			address, _ := endpoint(i % (services * endpoints))
			return netip.AddrPortFrom(netip.MustParseAddr(address), 8080)
		}),
		n.flows("IPv6 "+name, services, 0, out, sixAddress("fd01::", 8080)))
}

// packets measures packets to services, before and after there is an access list.
func (n *node) packets(_ options, services int, out *figures) error {
	if n.programs.vpp == "" {
		return nil // main says so
	}
	row := func(i int) netip.AddrPort {
		if services > oldFlows {
			i *= services / oldFlows // few flows, all parts of the table
		}
		return netip.AddrPortFrom(netip.MustParseAddr(clusterIP(i%services)), 80)
	}
	if err := errors.Join(
		n.straight("to no service", services, out),
		n.flows("NAT44", services, 1, out, row),
		n.flows("CNAT", services, 1, out, sixAddress("fd10::", 80))); err != nil {
		return err
	}
	path := filepath.Join(n.file("objects"), "ranges.yaml")
	if err := os.WriteFile(path, []byte(rangesObject), 0o600); err != nil {
		return fmt.Errorf("write service with source ranges: %w", err)
	}
	guarded := netip.MustParseAddrPort("172.20.0.1:80")
	for _, shown := range []string{"nat44 static mappings", "acl-plugin interface"} {
		want := map[string]string{"nat44 static mappings": guarded.String(), "acl-plugin interface": "input acl(s)"}[shown]
		if err := n.await(shown, func() bool {
			text, err := n.show(shown)
			return err == nil && strings.Contains(text, want)
		}); err != nil {
			return err
		}
	}
	return errors.Join(
		n.flows("NAT44 beside an access list", services, 2, out, row),
		n.flows("NAT44 behind an access list", services, 3, out, func(int) netip.AddrPort { return guarded }),
		n.flows("CNAT beside an access list", services, 3, out, sixAddress("fd10::", 80)))
}

// sixAddress returns the addresses of IPv6 services or of their endpoints.
func sixAddress(prefix string, port uint16) func(int) netip.AddrPort {
	return func(i int) netip.AddrPort {
		a := netip.MustParseAddr(prefix).As16()
		a[15] = byte(1 + i%sixServices)
		return netip.AddrPortFrom(netip.AddrFrom16(a), port)
	}
}

// flows measures packets of few flows, which have sessions, and of new flows. Clients of different
// turns and rounds have different ports.
func (n *node) flows(name string, services, turn int, out *figures, to func(i int) netip.AddrPort) error {
	const each = oldFlows + newFlows
	path := n.file("packets.pcap")
	var all, ours [2]float64
	for round := range rounds {
		port := 1024 + (turn*rounds+round)*each
		for i, s := range []struct {
			flags                byte
			flows, port, packets int
		}{
			{syn, newFlows, port, newFlows},
			{syn, oldFlows, port + newFlows, oldFlows}, // not measured
			{ack, oldFlows, port + newFlows, oldPackets},
		} {
			if err := writeCapture(path, s.flags, s.flows, s.port, to); err != nil {
				return fmt.Errorf("write packets: %w", err)
			}
			nodes, err := n.stream(path, to(0).Addr().Is6(), s.packets)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			a, o := cost(nodes, s.packets)
			if at := i / 2; i != 1 && (round == 0 || a < all[at]) {
				all[at], ours[at] = a, o
			}
		}
	}
	for i, flows := range []string{"new flows", "old flows"} {
		out.add(name+", "+flows, services, "clocks for a packet", all[i])
		out.add(name+", "+flows+": nodes of features", services, "clocks for a packet", ours[i])
	}
	return nil
}

// graphNode is what a node of VPP's graph has done.
type graphNode struct{ packets, clocks float64 } // clocks for each packet

// stream sends packets of a capture file, which must all reach the network, and returns the nodes
// on their way.
func (n *node) stream(path string, is6 bool, packets int) (map[string]graphNode, error) {
	input := map[bool]string{false: "ip4-input", true: "ip6-input"}[is6]
	for _, command := range []string{
		fmt.Sprintf("packet-generator new name s limit %d source %s node %s pcap %s", packets, clients, input, path),
		"clear runtime", "packet-generator enable-stream s",
	} {
		if err := n.command(command); err != nil {
			return nil, err
		}
	}
	if err := n.await("packets", func() bool {
		shown, err := n.show("packet-generator")
		return err == nil && strings.Contains(strings.Join(strings.Fields(shown), " "), fmt.Sprintf(" s No %d ", packets))
	}); err != nil {
		return nil, err
	}
	shown, err := n.show("runtime")
	if err := errors.Join(err, n.command("packet-generator delete s")); err != nil {
		return nil, err
	}
	nodes := graph(shown)
	// VPP may send a few packets of its own, which it does not rewrite, so the interface may
	// have more.
	rewritten := nodes[map[bool]string{false: "ip4-rewrite", true: "ip6-rewrite"}[is6]].packets
	if sent := nodes[network+"-tx"].packets; rewritten != float64(packets) || sent < float64(packets) {
		return nodes, fmt.Errorf("of %d packets, %.0f were forwarded, %.0f reached the network\n%s", packets, rewritten, sent, shown)
	}
	return nodes, nil
}

// graph reads the nodes that packets have crossed from the output of "show runtime".
func graph(shown string) map[string]graphNode {
	nodes := map[string]graphNode{}
	for line := range strings.Lines(shown) {
		// name, state, calls, vectors, suspends, clocks, vectors/call
		fields := strings.Fields(line)
		if len(fields) != 7 || fields[1] != "active" {
			continue
		}
		packets, err1 := strconv.ParseFloat(fields[3], 64)
		clocks, err2 := strconv.ParseFloat(fields[5], 64)
		if err1 == nil && err2 == nil && packets > 0 {
			nodes[fields[0]] = graphNode{packets, clocks}
		}
	}
	return nodes
}

// cost returns the clocks for each packet of all nodes, and of those of NAT44, CNAT and access
// lists.
func cost(nodes map[string]graphNode, packets int) (all, ours float64) {
	for name, g := range nodes {
		clocks := g.clocks * g.packets / float64(packets)
		all += clocks
		// NAT44 asks for the reassembly
		for _, prefix := range []string{"nat44-", "cnat-", "acl-plugin-", "ip4-sv-reassembly-"} {
			if strings.HasPrefix(name, prefix) {
				ours += clocks
			}
		}
	}
	return all, ours
}
