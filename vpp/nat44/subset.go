package nat44

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
)

// backend is a backend while rows are planned. It holds no pointer, so that sorting a thousand of
// them adds no work for the garbage collector.
type backend struct {
	// at are address and port as one number that orders like them.
	at uint64
	// local is true where the endpoint is on this node.
	local bool
}

// choice is the result of choose for one list of backends. The frontends of a service mostly share
// one list, so it is computed once for all of them.
type choice struct {
	from []*messages.Backend
	// locals are the backends of the row, with their weight; immutable.
	locals []Local
	// left are the usable backends for which there is no room.
	left []backend
	// drains are the backends that keep their connections, for the last list of them;
	// immutable.
	drained []*messages.Backend
	drains  []Local
	// total is the number of usable backends.
	total int
	// elsewhere says that some of the locals are not on this node.
	elsewhere bool
	// unusable are the backends that cannot be in a row.
	unusable []unusable
}

// unusable is a backend that cannot be in a row, and why.
type unusable struct{ endpoint, why string }

// locals returns the usable backends of a rule, no more than fit into a row, and reports the
// others.
func (p *planner) locals(f *messages.Frontend) []Local {
	if from := f.GetBackends(); !sameList(from, p.chosen.from) {
		p.chosen = choose(p.cfg.Node, from, p.cfg.Tables)
	}
	for _, u := range p.chosen.unusable {
		p.Unrender(f, "endpoints", fmt.Sprintf("endpoint %s of %s: %s", u.endpoint, p.Frontend, u.why))
	}
	if total := p.chosen.total; total > MaxBackends {
		p.Approximate(fmt.Sprintf("%d endpoints", total), fmt.Sprintf("%d endpoints, local ones first", MaxBackends), whySubset)
		p.Particular()
	}
	return p.chosen.locals
}

// draining returns the backends that keep their connections: the ones that the rule names, and the
// ones for which a new row has no room.
func (p *planner) draining(f *messages.Frontend) []Local {
	if from := f.GetDraining(); p.chosen.drains == nil || len(from)+len(p.chosen.drained) > 0 && !sameList(from, p.chosen.drained) {
		p.chosen.drained, p.chosen.drains = from, drainingOf(f, p.chosen.left)
	}
	return p.chosen.drains
}

// drainingOf returns the backends that a rule names as draining, and others.
func drainingOf(f *messages.Frontend, others []backend) []Local {
	if len(f.GetDraining()) == 0 && len(others) == 0 || f.GetProtocol() == messages.Protocol_SCTP {
		return nil
	}
	backends := slices.Clone(others)
	for _, b := range f.GetDraining() {
		if at, problem := parseBackend(b); problem == "" {
			backends = append(backends, backend{at: at})
		}
	}
	backends = unique(backends)
	list := make([]Local, len(backends))
	for i, b := range backends {
		list[i] = Local{Addr: netip.AddrFrom4(b.address()), Port: uint16(b.at)}
	}
	return list
}

// sameList reports whether two lists share their memory, which is cheaper to see than equal content
// and is the usual case.
func sameList(a, b []*messages.Backend) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// choose returns the locals of a row on this node.
func choose(node string, from []*messages.Backend, tables forwarding.Tables) choice {
	c := choice{from: from}
	backends := make([]backend, 0, len(from))
	for _, b := range from {
		at, problem := parseBackend(b)
		if problem != "" {
			c.unusable = append(c.unusable, unusable{fmt.Sprintf("%s:%d", b.GetAddress(), b.GetPort()), problem})
			continue
		}
		backends = append(backends, backend{at: at, local: b.GetLocal()})
	}
	backends = unique(backends)
	if c.total = len(backends); c.total > MaxBackends {
		all := slices.Clone(backends) // subset uses the memory of its argument
		backends = subset(node, backends)
		c.left = slices.DeleteFunc(all, func(b backend) bool {
			_, chosen := slices.BinarySearchFunc(backends, b, func(a, b backend) int { return cmp.Compare(a.at, b.at) })
			return chosen
		})
	}
	if len(backends) == 0 {
		return c
	}
	c.locals = make([]Local, len(backends))
	for i, b := range backends {
		addr := netip.AddrFrom4(b.address())
		c.locals[i] = Local{Addr: addr, Port: uint16(b.at), Table: tables.Of(addr), Weight: Weight(len(backends))}
		c.elsewhere = c.elsewhere || !b.local
	}
	return c
}

// parseBackend translates one backend, or returns why it is unusable.
func parseBackend(b *messages.Backend) (at uint64, problem string) {
	addr, err := netip.ParseAddr(b.GetAddress())
	if err != nil || !addr.Is4() {
		return 0, "not an IPv4 address"
	}
	if b.GetPort() == 0 || b.GetPort() > 65535 {
		return 0, "not a port"
	}
	if Reserved(netip.AddrPortFrom(addr, uint16(b.GetPort()))) {
		return 0, "reserved for the renderer"
	}
	a := addr.As4()
	return uint64(a[0])<<40 | uint64(a[1])<<32 | uint64(a[2])<<24 | uint64(a[3])<<16 | uint64(b.GetPort()), ""
}

// address returns the IPv4 address of the backend.
func (b backend) address() [4]byte {
	return [4]byte{byte(b.at >> 40), byte(b.at >> 32), byte(b.at >> 24), byte(b.at >> 16)}
}

// unique orders backends and removes repeated endpoints.
func unique(backends []backend) []backend {
	slices.SortFunc(backends, func(a, b backend) int { return cmp.Compare(a.at, b.at) })
	return slices.CompactFunc(backends, func(a, b backend) bool { return a.at == b.at })
}

// subset chooses the backends that get a place in the row, out of ordered ones: local ones first,
// then the ones with the smallest hash of node and endpoint. So the subset changes by one when one
// backend is added or deleted, and nodes choose differently. The order stays.
func subset(node string, backends []backend) []backend {
	here := 0
	for _, b := range backends {
		if b.local {
			here++
		}
	}
	// Where more backends are local than fit, the local ones compete for the places; otherwise
	// all of them are in, and the remote ones compete for the rest.
	competing, places := true, MaxBackends
	if here <= MaxBackends {
		competing, places = false, MaxBackends-here
	}
	seed := hashText(hashStart, node)
	ranks := make([]uint64, 0, len(backends))
	for _, b := range backends {
		if b.local == competing {
			ranks = append(ranks, b.rank(seed))
		}
	}
	slices.Sort(ranks)
	last, ties := uint64(0), 0 // the largest rank that gets a place, and how many of that rank do
	if places > 0 {
		last = ranks[places-1]
		first, _ := slices.BinarySearch(ranks, last)
		ties = places - first
	}
	kept := backends[:0]
	for _, b := range backends {
		if b.local == competing {
			rank := b.rank(seed)
			if rank > last || rank == last && ties == 0 {
				continue
			}
			if rank == last {
				ties--
			}
		} else if !b.local {
			continue
		}
		kept = append(kept, b)
	}
	return kept
}

// FNV-1a with 64 bits, because its state after the name of the node can be reused for all backends.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

func hashText(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * hashPrime
	}
	return h
}

// rank orders the backends that compete for a place: the hash of seed, address and port.
func (b backend) rank(seed uint64) uint64 {
	for shift := 40; shift >= 0; shift -= 8 {
		seed = (seed ^ b.at>>shift&0xff) * hashPrime
	}
	return seed
}
