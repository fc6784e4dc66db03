package service

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// Packet is the first packet of a connection, as this node sees it.
type Packet struct {
	// Source is where it comes from.
	Source netip.Addr
	// Destination is where it goes.
	Destination netip.AddrPort
	// Protocol is its transport protocol.
	Protocol messages.Protocol
}

// Verdict is what this node does with a packet. The zero value means that it is no service traffic.
type Verdict struct {
	// Service is true when the packet belongs to services at all; otherwise this node does not touch it and the rest is empty.
	Service bool
	// Action is forward, reject or drop.
	Action messages.Action
	// Backends are the endpoints one of which gets the packet, each with the same probability; empty unless forwarded.
	Backends []*messages.Backend
	// Masquerade is true when the source address is replaced whatever backend is chosen. Besides, see Masquerades.
	Masquerade bool
	// Row is the row that decided; nil when a rule about service addresses did.
	Row *messages.Frontend
	// Owner is the key of the service whose row or cluster IP decided; "" for an address that no service has.
	Owner string

	source netip.Addr
}

// Masquerades reports whether the source address is replaced when the packet goes to this backend: a backend that is its own client must
// get the packet from another address, or it would answer itself directly.
func (v Verdict) Masquerades(backend *messages.Backend) bool {
	if v.Masquerade {
		return true
	}
	a, ok := parseAddress(backend.GetAddress())
	return ok && a.ip == v.source
}

// Word returns the action as the public interface names it, or "none" for a packet that is no service traffic.
func (v Verdict) Word() string {
	if !v.Service {
		return "none"
	}
	return ActionWord(v.Action)
}

// flowKey is what a packet is looked up by.
type flowKey struct {
	where    netip.AddrPort
	protocol messages.Protocol
}

// entry is what a Table knows of one frontend.
type entry struct {
	rows  []*messages.Frontend
	owner *messages.ServiceView
}

// Table evaluates packets against the views of all services of a node: the meaning of the rows, independent of any dataplane. It is
// immutable and may be used from any goroutine.
type Table struct {
	frontends    map[flowKey]entry
	clusterIPs   map[netip.Addr]string
	nodes        map[netip.Addr]struct{}
	clusterCIDRs []netip.Prefix
	serviceCIDRs []netip.Prefix
}

// NewTable makes a table of views. A frontend that several services claim belongs to the oldest one, then to the smallest key; the order
// of the views does not matter. The views are shared, not copied.
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

// insert adds the rows of a view where no earlier one has the frontend.
func (t *Table) insert(view *messages.ServiceView) {
	for _, row := range view.GetFrontends() {
		a, ok := parseAddress(row.GetAddress())
		if !ok || !validPort(row.GetPort()) {
			continue
		}
		key := flowKey{netip.AddrPortFrom(a.ip, uint16(row.GetPort())), row.GetProtocol()} //nolint:gosec // validPort
		known, found := t.frontends[key]
		if found && known.owner != view {
			continue
		}
		t.frontends[key] = entry{rows: append(known.rows, row), owner: view}
		if _, taken := t.clusterIPs[a.ip]; !taken && row.GetKind() == messages.FrontendKind_KIND_CLUSTER_IP {
			t.clusterIPs[a.ip] = view.GetKey()
		}
	}
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

// Verdict returns the treatment of a packet by this node. Source ranges come first, then the row for the class of the client. A cluster IP refuses
// ports and protocols it does not have, and an address of the service CIDRs that no service has swallows everything, so that such packets
// never wander to the default route.
func (t *Table) Verdict(p Packet) Verdict {
	source := p.Source.Unmap()
	where := netip.AddrPortFrom(p.Destination.Addr().Unmap(), p.Destination.Port())
	if e, ok := t.frontends[flowKey{where, p.Protocol}]; ok {
		class := t.Class(source)
		for _, row := range e.rows {
			if concerns(row.GetFrom(), class) {
				return judge(e.owner.GetKey(), row, source, class)
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
func judge(owner string, row *messages.Frontend, source netip.Addr, class string) Verdict {
	v := Verdict{Service: true, Row: row, Owner: owner, source: source}
	if !allowed(row.GetAllowSources(), source) {
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

// allowed reports whether the source may come in.
func allowed(ranges []string, source netip.Addr) bool {
	if len(ranges) == 0 {
		return true
	}
	return slices.ContainsFunc(ranges, func(text string) bool {
		prefix, ok := parsePrefix(text)
		return ok && prefix.Contains(source)
	})
}
