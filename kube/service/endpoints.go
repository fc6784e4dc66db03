package service

import (
	"cmp"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// candidate is one endpoint of one slice of the family that is being resolved.
type candidate struct {
	address string
	object  *messages.Endpoint
}

// offer is one port of one slice, with the endpoints that listen on it.
type offer struct {
	source     *messages.EndpointSlice
	port       uint32
	candidates []candidate
}

// gathered holds the offers of all slices of one family, by port name: a service port finds its
// offers under its own name.
type gathered map[portName][]offer

// endpoint is one ip:port that a service port may forward to.
type endpoint struct {
	// text is "ip:port": the identity and the order of endpoints.
	text    string
	address string
	port    uint32
	object  *messages.Endpoint
	source  *messages.EndpointSlice
	// end is where the text ends in joiner.text.
	end int
	// inCluster and inLocal are the result of the selection.
	inCluster, inLocal bool
}

// ready reports whether the endpoint takes new connections by itself. A terminating endpoint that
// says it is ready counts.
func (e *endpoint) ready() bool { return e.object.GetReady() }

// lastResort reports whether the endpoint may be used when no endpoint is ready: it shuts down but
// still answers.
func (e *endpoint) lastResort() bool { return e.object.GetServing() && e.object.GetTerminating() }

// offersEndpoints reports whether a slice has endpoints of this family for this service. FQDN
// slices and slices with the headless label have none.
func offersEndpoints(slice *messages.EndpointSlice, service *messages.Service, family messages.IPFamily) bool {
	return slice.GetFamily() == family && !slice.GetHeadless() &&
		slice.GetService() == service.GetName() && slice.GetNamespace() == service.GetNamespace()
}

// gather collects the endpoints of one family from the slices of the input. Texts that are no
// address, or an address of the other family, are left out and reported once per slice.
func (r *resolver) gather(family messages.IPFamily) gathered {
	g, total := gathered{}, 0
	for _, slice := range r.in.GetSlices() {
		if offersEndpoints(slice, r.service, family) {
			total += len(slice.GetEndpoints())
		}
	}
	if total == 0 {
		return g
	}
	candidates := make([]candidate, 0, total)
	for _, slice := range r.in.GetSlices() {
		if !offersEndpoints(slice, r.service, family) {
			continue
		}
		first := len(candidates)
		var unusable []string
		for _, object := range slice.GetEndpoints() {
			a, ok := parseAddress(object.GetAddress())
			if !ok || a.family() != family {
				if object.GetAddress() != "" {
					unusable = append(unusable, object.GetAddress())
				}
				continue
			}
			candidates = append(candidates, candidate{address: a.text, object: object})
		}
		if len(unusable) > 0 {
			r.badEndpoints(slice, unusable)
		}
		for _, p := range slice.GetPorts() {
			if validPort(p.GetPort()) {
				g[nameOf(p)] = append(g[nameOf(p)], offer{slice, p.GetPort(), candidates[first:]})
			}
		}
	}
	return g
}

// joiner holds the buffers of join, which all ports of a service use in turn.
type joiner struct {
	endpoints []endpoint
	order     []sortKey
	merged    []*endpoint
	text      []byte
}

// join returns the endpoints of one service port, one per ip:port, ordered by text. It collects
// them from every slice port with the same name and protocol. The destination is the number of the
// slice port; targetPort is not used. The next call overwrites the result.
func (j *joiner) join(g gathered, port portName) []*endpoint {
	j.endpoints, j.text = j.endpoints[:0], j.text[:0]
	total := 0
	for _, o := range g[port] {
		total += len(o.candidates)
	}
	if total > cap(j.endpoints) {
		j.grow(total)
	}
	for _, o := range g[port] {
		for _, c := range o.candidates {
			j.text = appendAddressPort(j.text, c.address, o.port)
			j.endpoints = append(j.endpoints, endpoint{address: c.address, port: o.port, object: c.object, source: o.source, end: len(j.text)})
		}
	}
	// One string for all texts: a thousand endpoints cost one allocation.
	all, start := string(j.text), 0
	for i := range j.endpoints {
		e := &j.endpoints[i]
		e.text = all[start:e.end]
		start = e.end
	}
	return j.merge()
}

// grow makes room for the given number of endpoints.
func (j *joiner) grow(endpoints int) {
	j.endpoints = make([]endpoint, 0, endpoints)
	j.order = make([]sortKey, 0, endpoints)
	j.merged = make([]*endpoint, 0, endpoints)
	j.text = make([]byte, 0, endpoints*24)
}

// sortKey stands for an endpoint while it is sorted. Moving it around costs the garbage collector
// nothing, and the part of the text in it decides nearly every comparison.
type sortKey struct {
	// part is the first eight bytes of the text after the prefix that all texts share, as a number.
	part uint64
	// index is the place of the endpoint in joiner.endpoints.
	index int
}

// merge orders the endpoints by text and keeps the preferred one where several have the same text.
func (j *joiner) merge() []*endpoint {
	j.order, j.merged = j.order[:0], j.merged[:0]
	common := commonPrefix(j.endpoints)
	for i := range j.endpoints {
		j.order = append(j.order, sortKey{part: eightBytes(j.endpoints[i].text[common:]), index: i})
	}
	slices.SortFunc(j.order, func(a, b sortKey) int {
		if a.part != b.part {
			return cmp.Compare(a.part, b.part)
		}
		return cmp.Compare(j.endpoints[a.index].text, j.endpoints[b.index].text)
	})
	for _, key := range j.order {
		e := &j.endpoints[key.index]
		last := len(j.merged) - 1
		switch {
		case last < 0 || j.merged[last].text != e.text:
			j.merged = append(j.merged, e)
		case preferred(e, j.merged[last]) < 0:
			j.merged[last] = e
		}
	}
	return j.merged
}

// commonPrefix returns the length in bytes of the prefix that all texts share.
func commonPrefix(endpoints []endpoint) int {
	if len(endpoints) == 0 {
		return 0
	}
	first := endpoints[0].text
	common := len(first)
	for i := range endpoints {
		text := endpoints[i].text
		common = min(common, len(text))
		for n := range common {
			if text[n] != first[n] {
				common = n
				break
			}
		}
	}
	return common
}

// eightBytes returns the first eight bytes of a text as a number that compares like the text; a
// shorter text is filled with zeros, which no address contains.
func eightBytes(text string) uint64 {
	var part uint64
	for i := range 8 {
		part <<= 8
		if i < len(text) {
			part |= uint64(text[i])
		}
	}
	return part
}

// preferred decides between two entries with the same ip:port; negative means a. A pod address may
// be reused while the old pod still terminates, and then the new pod must win. So the endpoint that
// does not terminate comes first, then the ready one, then the slice with the higher generation,
// then the slice with the smaller name. The remaining comparisons make the order total, so that the
// order of input never matters.
func preferred(a, b *endpoint) int {
	return cmp.Or(
		compareBool(a.object.GetTerminating(), b.object.GetTerminating()),
		compareBool(b.object.GetReady(), a.object.GetReady()),
		cmp.Compare(b.source.GetGeneration(), a.source.GetGeneration()),
		cmp.Compare(a.source.GetName(), b.source.GetName()),
		compareBool(b.object.GetServing(), a.object.GetServing()),
		cmp.Compare(a.object.GetNode(), b.object.GetNode()),
		slices.Compare(a.object.GetZoneHints(), b.object.GetZoneHints()),
		slices.Compare(a.object.GetNodeHints(), b.object.GetNodeHints()),
	)
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
