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
	// source is the index of its slice in gathered.sources.
	source int
}

// gathered is what the slices of one family offer, before it is joined with a service port.
type gathered struct {
	sources    []*messages.EndpointSlice
	candidates []candidate
}

// endpoint is one ip:port that a service port may forward to.
type endpoint struct {
	// text is "ip:port": the identity and the order of endpoints.
	text    string
	address string
	port    uint32
	object  *messages.Endpoint
	source  *messages.EndpointSlice
	// inCluster and inLocal are the result of the selection.
	inCluster, inLocal bool
}

// ready reports whether the endpoint takes new connections by itself. A terminating endpoint that says it is ready counts.
func (e *endpoint) ready() bool { return e.object.GetReady() }

// lastResort reports whether the endpoint may be used where nothing is ready: it shuts down but still answers.
func (e *endpoint) lastResort() bool { return e.object.GetServing() && e.object.GetTerminating() }

// offersEndpoints reports whether a slice is one of this service and family. Slices of FQDNs and those with the headless label give nothing.
func offersEndpoints(slice *messages.EndpointSlice, service *messages.Service, family messages.IPFamily) bool {
	return slice.GetFamily() == family && !slice.GetHeadless() &&
		slice.GetService() == service.GetName() && slice.GetNamespace() == service.GetNamespace()
}

// gather collects the endpoints of one family from the slices of the input. Addresses that are none, or of the other family, are left out
// and reported once per slice.
func (r *resolver) gather(family messages.IPFamily) gathered {
	var g gathered
	total := 0
	for _, slice := range r.in.GetSlices() {
		if offersEndpoints(slice, r.service, family) {
			total += len(slice.GetEndpoints())
			g.sources = append(g.sources, slice)
		}
	}
	if total == 0 {
		return g
	}
	g.candidates = make([]candidate, 0, total)
	for source, slice := range g.sources {
		var unusable []string
		for _, object := range slice.GetEndpoints() {
			a, ok := parseAddress(object.GetAddress())
			if !ok || a.family() != family {
				if object.GetAddress() != "" {
					unusable = append(unusable, object.GetAddress())
				}
				continue
			}
			g.candidates = append(g.candidates, candidate{address: a.text, object: object, source: source})
		}
		if len(unusable) > 0 {
			r.badEndpoints(slice, unusable)
		}
	}
	return g
}

// join returns the endpoints of one service port, one per ip:port, ordered by text: those of every slice port with the same name and
// protocol. targetPort plays no part, the number of the slice port is the destination. The result is overwritten by the next call.
func (r *resolver) join(g *gathered, port *messages.ServicePort) []endpoint {
	joined := r.endpoints[:0]
	text := r.text[:0]
	r.ends = r.ends[:0]
	for _, c := range g.candidates {
		source := g.sources[c.source]
		for _, p := range source.GetPorts() {
			if p.GetName() != port.GetName() || p.GetProtocol() != port.GetProtocol() || !validPort(p.GetPort()) {
				continue
			}
			if joined == nil {
				joined = make([]endpoint, 0, len(g.candidates))
				text = make([]byte, 0, len(g.candidates)*24)
				r.ends = make([]int, 0, len(g.candidates))
			}
			text = appendAddressPort(text, c.address, p.GetPort())
			r.ends = append(r.ends, len(text))
			joined = append(joined, endpoint{address: c.address, port: p.GetPort(), object: c.object, source: source})
		}
	}
	// One string for all texts: a thousand endpoints cost one allocation.
	all, start := string(text), 0
	for i, end := range r.ends {
		joined[i].text = all[start:end]
		start = end
	}
	r.endpoints, r.text = joined, text
	return merge(joined)
}

// merge orders endpoints by text and keeps the preferred one of those with the same text, in place.
func merge(endpoints []endpoint) []endpoint {
	byText := func(a, b endpoint) int { return cmp.Compare(a.text, b.text) }
	if !slices.IsSortedFunc(endpoints, byText) {
		slices.SortFunc(endpoints, byText)
	}
	kept := 0
	for i := range endpoints {
		if kept > 0 && endpoints[kept-1].text == endpoints[i].text {
			if preferred(&endpoints[i], &endpoints[kept-1]) < 0 {
				endpoints[kept-1] = endpoints[i]
			}
			continue
		}
		endpoints[kept] = endpoints[i]
		kept++
	}
	return endpoints[:kept]
}

// preferred decides between two entries with the same ip:port; negative means a. A pod address that was reused while the old pod still
// terminates must count as the new pod, so the one that does not terminate wins, then the ready one, then the slice of the higher
// generation, then the one with the smaller name. The rest only makes the order total, so that the order of input never matters.
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
