package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// Names and addresses of the node of all tests. Pods 2 to 5 of the node have the addresses 10.1.1.2
// to 10.1.1.5 and the interfaces pod2 to pod5; everything else is behind Uplink.
const (
	Node          = "n1"
	UplinkAddress = "192.168.16.1"
	Uplink        = "uplink0"
)

// Topology makes the interfaces of the node in VPP.
func Topology(v *simulator.VPP) {
	_, err := v.AddInterface(Uplink, []netip.Prefix{netip.MustParsePrefix(UplinkAddress + "/24")}, true)
	err = errors.Join(err, v.DefaultRoute(Uplink, netip.MustParseAddr("192.168.16.254")))
	for i := byte(2); i <= 5; i++ {
		_, e := v.AddPod(fmt.Sprint("pod", i), netip.AddrFrom4([4]byte{10, 1, 1, i}))
		err = errors.Join(err, e)
	}
	if err != nil {
		panic(err)
	}
}

// IPv6 of the node: UplinkIPv6/64 on the uplink, PodIPv6 before the number of each pod.
const (
	UplinkIPv6 = "2001:db8:16::1"
	PodIPv6    = "fd00:1::"
)

// DualTopology is Topology with IPv6 besides.
func DualTopology(v *simulator.VPP) {
	Topology(v)
	err := v.AddAddress(Uplink, netip.MustParsePrefix(UplinkIPv6+"/64"))
	err = errors.Join(err, v.DefaultRoute(Uplink, netip.MustParseAddr("2001:db8:16::fe")))
	for i := 2; i <= 5; i++ {
		addr := netip.MustParseAddr(fmt.Sprint(PodIPv6, i))
		err = errors.Join(err, v.AddRoute(simulator.Route{Prefix: netip.PrefixFrom(addr, 128), NextHop: addr, Interface: fmt.Sprint("pod", i)}))
	}
	if err != nil {
		panic(err)
	}
}

// DualNode is ThisNode with IPv6 besides.
func DualNode() *messages.Node {
	n := ThisNode()
	n.Addresses, n.PodCidrs = append(n.Addresses, UplinkIPv6), append(n.PodCidrs, PodIPv6+"/64")
	return n
}

// Rows lists the agent's NAT44 rows in VPP, ordered, with the backends that new connections reach.
// Rows without any, which VPP keeps for connections that drain, are left out.
func Rows(v *simulator.VPP) []string {
	var rows []string
	for _, row := range v.Rows() {
		if live, serves := Serving(row); serves && strings.Contains(row, "troupe/") {
			rows = append(rows, live)
		}
	}
	slices.Sort(rows)
	return rows
}

// rowText takes a row of the simulator apart.
var rowText = regexp.MustCompile(`^((\S+)/\d+ lb \[)(.*)(\].*)$`)

// Serving is the text of a row of the simulator with the shares of the backends that new
// connections reach. serves is false if there are none.
func Serving(row string) (text string, serves bool) {
	parts := rowText.FindStringSubmatch(row)
	if parts == nil {
		return row, true
	}
	live, _ := shares(parts)
	slices.SortFunc(live, func(a, b nat44.Local) int { return a.Endpoint().Compare(b.Endpoint()) })
	var texts []string
	for _, l := range live {
		texts = append(texts, fmt.Sprintf("%s weight %d", l, l.Weight))
	}
	return parts[1] + strings.Join(texts, ", ") + parts[4], len(live) > 0
}

// Draining are the backends of a row of the simulator that only keep their connections.
func Draining(row string) (endpoints []string) {
	if parts := rowText.FindStringSubmatch(row); parts != nil {
		_, draining := shares(parts)
		for _, l := range draining {
			endpoints = append(endpoints, l.String())
		}
	}
	return endpoints
}

// shares are the backends and shares that follow from the entries of a row.
func shares(parts []string) (live, draining []nat44.Local) {
	var entries []nat44.Local
	for _, entry := range strings.Split(parts[3], ", ") {
		var endpoint string
		var weight uint8
		if _, err := fmt.Sscanf(entry, "%s weight %d", &endpoint, &weight); err != nil {
			panic(err)
		}
		at := netip.MustParseAddrPort(endpoint)
		entries = append(entries, nat44.Local{Addr: at.Addr(), Port: at.Port(), Weight: weight})
	}
	return nat44.Shares(netip.MustParseAddrPort(parts[2]), entries)
}

// ThisNode is the object of the node.
func ThisNode() *messages.Node {
	return &messages.Node{Name: Node, Uid: "u1", Zone: "a", Addresses: []string{UplinkAddress}, PodCidrs: []string{"10.1.1.0/24"}}
}

// Peer is the object of another node.
func Peer(address string) *messages.Node {
	return &messages.Node{Name: "n2", Uid: "u2", Zone: "b", Addresses: []string{address}, PodCidrs: []string{"10.1.2.0/24"}}
}

// Pod is a pod of the node, "default/NAME".
func Pod(name, address string) *messages.Pod {
	return &messages.Pod{Namespace: "default", Name: name, Node: Node, Addresses: []string{address}}
}

// Service is the Service "default/NAME" with the TCP port 80.
func Service(name, ip string) *messages.Service {
	return &messages.Service{
		Namespace: "default", Name: name, Uid: "uid-" + name, Created: 1, ClusterIps: []string{ip}, IpFamilies: []messages.IPFamily{messages.IPFamily_IPV4},
		Ports: []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80}},
	}
}

// Slice is the first EndpointSlice of a Service, with ready endpoints at port 8080; 10.1.1.x are on
// this node.
func Slice(service string, addresses ...string) *messages.EndpointSlice {
	s := &messages.EndpointSlice{
		Namespace: "default", Name: service + "-1", Service: service, Family: messages.IPFamily_IPV4,
		Ports: []*messages.EndpointPort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 8080}},
	}
	for _, a := range addresses {
		node := "n2"
		if strings.HasPrefix(a, "10.1.1.") {
			node = Node
		}
		s.Endpoints = append(s.Endpoints, &messages.Endpoint{Address: a, Ready: true, Serving: true, Node: node})
	}
	return s
}

// VPP connects a simulated VPP with the interfaces of the node. It is closed at the end of the
// test.
func (s *Stage) VPP() *virtual.Stream {
	stream := virtual.New(s.Sim, Topology, nil)
	s.Cleanup(func() {
		if err := stream.VPP.Close(); err != nil {
			s.Error(err)
		}
	})
	return stream
}

// Store is a store of attachments that can be broken. It is used on the goroutine of the simulation
// only.
type Store struct {
	// Saved is what was saved last.
	Saved *messages.Attachments
	// Broken is the error of every call; nil = it works.
	Broken error
	// Saves counts calls of Save.
	Saves int
}

// Load satisfies interfaces.Store.
func (s *Store) Load() (*messages.Attachments, error) { return s.Saved, s.Broken }

// Save satisfies interfaces.Store.
func (s *Store) Save(all *messages.Attachments) error {
	if s.Saves++; s.Broken != nil {
		return s.Broken
	}
	s.Saved = all
	return nil
}

// Text lists what is saved, as "POD=INTERFACE".
func (s *Store) Text() string {
	var all []string
	for _, a := range s.Saved.GetItems() {
		all = append(all, a.GetPod()+"="+a.GetInterface())
	}
	return strings.Join(all, " ")
}
