package service

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Packet is the first packet of a connection, as this node sees it.
type Packet struct {
	// Source is the address of the client.
	Source netip.Addr
	// Destination is the address and port to which the client sends.
	Destination netip.AddrPort
	// Protocol is its transport protocol.
	Protocol messages.Protocol
}

// Verdict is this node's treatment of a packet. The zero value means that the packet is no service
// traffic.
type Verdict struct {
	// Service is true when the packet is service traffic. Otherwise this node does not touch the
	// packet, and the other fields are empty.
	Service bool
	// Action is forward, reject or drop.
	Action messages.Action
	// Backends are the possible destinations: one of them gets the packet, each with the same
	// probability. They are empty unless the packet is forwarded.
	Backends []*messages.Backend
	// Masquerade is true when the source address is replaced for every backend. Masquerades adds
	// the case of a backend that is its own client.
	Masquerade bool
	// Row is the row that decided; nil if a rule about service addresses decided.
	Row *messages.Frontend
	// Owner is the key of the service whose row or cluster IP decided; "" for an address that no
	// service has.
	Owner string

	source netip.Addr
}

// Masquerades reports whether the source address is replaced when the packet goes to this backend.
// A backend that is its own client must get the packet from another address, or it would answer
// itself directly.
func (v Verdict) Masquerades(backend *messages.Backend) bool {
	if v.Masquerade {
		return true
	}
	a, ok := parseAddress(backend.GetAddress())
	return ok && a.ip == v.source
}

// Word returns the action as the public interface names it, or "none" for a packet that is no
// service traffic.
func (v Verdict) Word() string {
	if !v.Service {
		return "none"
	}
	return Word(v.Action)
}

// flowKey is the key of a frontend in a Table.
type flowKey struct {
	where    netip.AddrPort
	protocol messages.Protocol
}

// entry is one frontend of a Table.
type entry struct {
	rows  []*messages.Frontend
	owner *messages.ServiceView
	// guards are the source ranges of all services that claim the frontend, because kube-proxy
	// looks up source ranges by address, port and protocol.
	guards [][]string
}

// Table evaluates packets against the views of all services of a node: the meaning of the rows,
// independent of any dataplane. It is immutable and may be used from any goroutine.
type Table struct {
	frontends    map[flowKey]entry
	clusterIPs   map[netip.Addr]string
	nodes        map[netip.Addr]struct{}
	clusterCIDRs []netip.Prefix
	serviceCIDRs []netip.Prefix
}

// NewTable makes a table of views. If several services claim a frontend, one owns it: the kind of
// the claim decides (see compareClaim), then the age, then the key. The order of the views does not
// matter. The views are shared, not copied.
func NewTable(views []*messages.ServiceView, node *messages.NodeContext, cfg Config) *Table {
	t := &Table{
		frontends:    map[flowKey]entry{},
		clusterIPs:   map[netip.Addr]string{},
		nodes:        map[netip.Addr]struct{}{},
		clusterCIDRs: cfg.ClusterCIDRs,
		serviceCIDRs: cfg.ServiceCIDRs,
	}
	for _, text := range node.GetAddresses() {
		if a, ok := parseAddress(text); ok {
			t.nodes[a.ip] = struct{}{}
		}
	}
	ordered := slices.SortedStableFunc(slices.Values(views), func(a, b *messages.ServiceView) int {
		return cmp.Or(cmp.Compare(a.GetCreated(), b.GetCreated()), cmp.Compare(a.GetKey(), b.GetKey()))
	})
	for _, view := range ordered {
		t.insert(view)
	}
	return t
}

// insert adds the rows of the next younger view. A row replaces an older one if its claim is
// better.
func (t *Table) insert(view *messages.ServiceView) {
	own := map[flowKey][]*messages.Frontend{}
	for _, row := range view.GetFrontends() {
		a, ok := parseAddress(row.GetAddress())
		if !ok || !validPort(row.GetPort()) {
			continue
		}
		key := flowKey{netip.AddrPortFrom(a.ip, uint16(row.GetPort())), row.GetProtocol()} //nolint:gosec // validPort
		own[key] = append(own[key], row)
		if _, taken := t.clusterIPs[a.ip]; !taken && row.GetKind() == messages.FrontendKind_KIND_CLUSTER_IP {
			t.clusterIPs[a.ip] = view.GetKey()
		}
	}
	for key, rows := range own {
		e, found := t.frontends[key]
		if !found || compareClaim(rows, e.rows) < 0 {
			e.rows, e.owner = rows, view
		}
		if allow := rows[0].GetAllowSources(); len(allow) > 0 {
			e.guards = append(e.guards, allow)
		}
		t.frontends[key] = e
	}
}

// compareClaim orders the claims of two services to one frontend, without their age. Kubernetes
// allocates cluster IPs and node ports, a controller of the cluster allocates load-balancer
// addresses, and the author of a service chooses external IPs. Among equal claims a service without
// endpoints loses.
func compareClaim(a, b []*messages.Frontend) int {
	idle := func(rows []*messages.Frontend) uint32 { // if one row rejects, all rows do
		return count(rows[0].GetAction() == messages.Action_ACTION_REJECT)
	}
	return cmp.Or(cmp.Compare(claimRank(a[0].GetKind()), claimRank(b[0].GetKind())), cmp.Compare(idle(a), idle(b)))
}

// claimRank is lower for the kinds of frontends whose claim counts first.
func claimRank(kind messages.FrontendKind) int {
	return slices.Index([]messages.FrontendKind{
		messages.FrontendKind_KIND_CLUSTER_IP, messages.FrontendKind_KIND_NODE_PORT, messages.FrontendKind_KIND_LOAD_BALANCER_IP,
		messages.FrontendKind_KIND_EXTERNAL_IP,
	}, kind)
}

// Class returns the client class of a source address: ClassPod, ClassNode or ClassRemote.
func (t *Table) Class(source netip.Addr) string {
	source = source.Unmap()
	if anyContains(t.clusterCIDRs, source) {
		return ClassPod
	}
	if _, own := t.nodes[source]; own {
		return ClassNode
	}
	return ClassRemote
}

// Verdict returns the treatment of a packet by this node. Source ranges come first, then the row
// for the class of the client. A cluster IP refuses ports and protocols that its service does not
// have. Packets to an unused address of the service CIDRs are dropped, so that they never take the
// default route.
func (t *Table) Verdict(p Packet) Verdict {
	source := p.Source.Unmap()
	where := netip.AddrPortFrom(p.Destination.Addr().Unmap(), p.Destination.Port())
	if e, ok := t.frontends[flowKey{where, p.Protocol}]; ok {
		class := t.Class(source)
		for _, row := range e.rows {
			if concerns(row.GetFrom(), class) {
				return e.judge(row, source, class)
			}
		}
	}
	if owner, allocated := t.clusterIPs[where.Addr()]; allocated {
		return Verdict{Service: true, Action: messages.Action_ACTION_REJECT, Owner: owner, source: source}
	}
	if anyContains(t.serviceCIDRs, where.Addr()) {
		return Verdict{Service: true, Action: messages.Action_ACTION_DROP, source: source}
	}
	return Verdict{}
}

// concerns reports whether a row is for clients of the class.
func concerns(from messages.ClientClass, class string) bool {
	switch from {
	case messages.ClientClass_FROM_ANY:
		return true
	case messages.ClientClass_FROM_LOCAL:
		return class != ClassRemote
	default:
		return class == ClassRemote
	}
}

// judge applies one row to a client.
func (e entry) judge(row *messages.Frontend, source netip.Addr, class string) Verdict {
	v := Verdict{Service: true, Row: row, Owner: e.owner.GetKey(), source: source}
	if slices.ContainsFunc(e.guards, func(ranges []string) bool { return !allowed(ranges, source) }) {
		v.Action = messages.Action_ACTION_DROP
		return v
	}
	v.Action = row.GetAction()
	if v.Action == messages.Action_ACTION_FORWARD {
		v.Backends = row.GetBackends()
		v.Masquerade = slices.Contains(row.GetMasqueradeFrom(), class)
	}
	return v
}

// allowed reports whether one of the ranges contains the source.
func allowed(ranges []string, source netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(text string) bool {
		prefix, ok := parsePrefix(text)
		return ok && prefix.Contains(source)
	})
}
