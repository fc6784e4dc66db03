package nat44

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// backend is a backend of a rule while it is planned.
type backend struct {
	Local
	local bool
	// rank orders the backends that compete for a place in the row.
	rank uint64
}

// backends returns the usable backends of a rule, no more than fit into a row.
func (p *planner) backends(rule *messages.Frontend) []backend {
	backends := make([]backend, 0, len(rule.GetBackends()))
	for _, b := range rule.GetBackends() {
		local, err := parseLocal(b)
		if err != nil {
			p.unrendered(rule, "endpoints", fmt.Sprintf("endpoint %s:%d of %s: %v", b.GetAddress(), b.GetPort(), p.name, err))
			continue
		}
		backends = append(backends, backend{Local: local, local: b.GetLocal()})
	}
	backends = unique(backends)
	if total := len(backends); total > MaxBackends {
		backends = p.subset(backends)
		p.approximate(fmt.Sprintf("%d endpoints", total), fmt.Sprintf("%d endpoints, local ones first", MaxBackends), whySubset)
	}
	return backends
}

// parseLocal translates one backend, without a weight.
func parseLocal(b *messages.Backend) (Local, error) {
	addr, err := netip.ParseAddr(b.GetAddress())
	if err != nil || !addr.Is4() {
		return Local{}, fmt.Errorf("not an IPv4 address")
	}
	if b.GetPort() == 0 || b.GetPort() > 65535 {
		return Local{}, fmt.Errorf("not a port")
	}
	local := Local{Addr: addr, Port: uint16(b.GetPort())}
	if padIndex(local) >= 0 {
		return Local{}, fmt.Errorf("reserved for the renderer")
	}
	return local, nil
}

// unique removes backends with the same endpoint.
func unique(backends []backend) []backend {
	byEndpoint := func(a, b backend) int { return compareEndpoint(a.Local, b.Local) }
	if !slices.IsSortedFunc(backends, byEndpoint) {
		slices.SortFunc(backends, byEndpoint)
	}
	return slices.CompactFunc(backends, func(a, b backend) bool { return byEndpoint(a, b) == 0 })
}

// subset chooses the backends that get a place in the row: local ones, then those with the smallest hash of node and endpoint. So it
// changes by one when one backend comes or goes, and nodes choose differently.
func (p *planner) subset(backends []backend) []backend {
	for i := range backends {
		backends[i].rank = rank(p.cfg.Node, backends[i].Local)
	}
	slices.SortFunc(backends, func(a, b backend) int {
		switch {
		case a.local != b.local && a.local:
			return -1
		case a.local != b.local:
			return 1
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), compareEndpoint(a.Local, b.Local))
	})
	return backends[:MaxBackends]
}

// rank hashes an endpoint for a node.
func rank(node string, l Local) uint64 {
	h := fnv.New64a()
	addr := l.Addr.As4()
	_, _ = h.Write(append(append([]byte(node), addr[:]...), byte(l.Port>>8), byte(l.Port)))
	return h.Sum64()
}
