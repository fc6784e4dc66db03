package service

import (
	"cmp"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
)

// frontendsOf holds the addresses at which clients reach one family of a service. They are the same
// for all of its ports.
type frontendsOf struct {
	clusterIP              address
	external, loadBalancer []address
	// nodes are the addresses for node ports; empty unless some port has one.
	nodes []address
	// allow are the source ranges of the load-balancer addresses; nil = every client.
	allow []string
	// closed is true when no client is admitted to the load-balancer addresses.
	closed bool
	// detector is true when pods of this node can be recognised.
	detector bool
}

// frontendsOf collects the addresses of one family.
func (r *resolver) frontendsOf(family messages.IPFamily, clusterIP address) frontendsOf {
	f := frontendsOf{
		clusterIP:    clusterIP,
		external:     ofFamily(r.external, family),
		loadBalancer: ofFamily(r.loadBalancer, family),
		detector:     r.cfg.detects(r.node, family),
	}
	// Choosing node addresses walks all of them; most services have no node port.
	if slices.ContainsFunc(r.ports, hasNodePort) {
		f.nodes = r.cfg.NodePortAddresses.choose(r.node, family)
	}
	if len(f.loadBalancer) > 0 && len(r.service.GetSourceRanges()) > 0 {
		f.allow, f.closed = allowSources(r.service.GetSourceRanges(), family, f.loadBalancer, r.node)
	}
	return f
}

// isExternal reports whether packets to the address are external traffic.
func (f *frontendsOf) isExternal(a address) bool {
	return containsAddress(f.external, a.ip) || containsAddress(f.loadBalancer, a.ip)
}

// ofFamily returns the addresses of one family in their order.
func ofFamily(all []address, family messages.IPFamily) []address {
	var some []address
	for _, a := range all {
		if a.family() == family {
			some = append(some, a)
		}
	}
	return some
}

// hasNodePort reports whether a port of the Service is served on node addresses. The type of the
// Service does not matter.
func hasNodePort(port *messages.ServicePort) bool { return validPort(port.GetNodePort()) }

// policies are the traffic policies of one service port, as far as they have an effect.
type policies struct {
	// internalLocal is true when the cluster IP uses the Local set.
	internalLocal bool
	// externalLocal is true when external frontends use the Local set for remote clients.
	externalLocal bool
	// external is true when the port has any external frontend in this family.
	external bool
}

// policiesOf returns the policies of a port. externalTrafficPolicy counts only for services that
// can be reached from outside, because the API keeps an old value in the others.
func (r *resolver) policiesOf(f *frontendsOf, port *messages.ServicePort) policies {
	accessible := r.service.GetType() == messages.ServiceType_NODE_PORT ||
		r.service.GetType() == messages.ServiceType_LOAD_BALANCER ||
		len(r.service.GetExternalIps()) > 0
	return policies{
		internalLocal: r.service.GetInternalPolicy() == messages.TrafficPolicy_POLICY_LOCAL,
		externalLocal: accessible && r.service.GetExternalPolicy() == messages.TrafficPolicy_POLICY_LOCAL,
		external:      hasNodePort(port) || len(f.loadBalancer) > 0 || len(f.external) > 0,
	}
}

// need returns the sets that the port uses. With external frontends the Cluster set is needed even
// if both policies are Local, for clients on this node.
func (p policies) need() need {
	// Each set costs a pass over all endpoints, so only the sets in use are made.
	return need{cluster: !p.internalLocal || p.external, local: p.internalLocal || p.externalLocal && p.external}
}

// perClient reports whether the external frontends treat clients on this node differently from
// remote clients. They do so with the Local policy. If no endpoint is usable, all clients are
// refused and one row is enough.
func (p policies) perClient(s selection) bool { return p.externalLocal && s.usable }

// verdict is what happens to packets that may use one set of endpoints.
type verdict struct {
	action     messages.Action
	backends   []*messages.Backend
	draining   []*messages.Backend
	masquerade []string
}

// verdictOf rejects if no endpoint is usable anywhere, and drops if the usable endpoints are all
// outside of this set.
func verdictOf(s selection, set, draining []*messages.Backend, masquerade []string) verdict {
	switch {
	// A reject tells the client at once; a drop makes it retry, when another node could serve it.
	case !s.usable:
		return verdict{action: messages.Action_ACTION_REJECT, draining: draining}
	case len(set) == 0:
		return verdict{action: messages.Action_ACTION_DROP, draining: draining}
	default:
		return verdict{action: messages.Action_ACTION_FORWARD, backends: set, draining: draining, masquerade: masquerade}
	}
}

// addRows adds all rows of one service port in one family.
func (r *resolver) addRows(f *frontendsOf, port *messages.ServicePort, p policies, s selection) {
	w := r.writer(f, port, p, s)
	internal, leaving := s.cluster, s.clusterDraining
	if p.internalLocal {
		internal, leaving = s.local, s.localDraining
	}
	w.all = verdictOf(s, internal, leaving, masqueradeFrom(policyInternal, f.detector, r.cfg.MasqueradeAll))
	clusterIP := spot{f.clusterIP, port.GetPort(), messages.Scope_SCOPE_CLUSTER, messages.FrontendKind_KIND_CLUSTER_IP, nil}
	// Traffic to an external address that is also the cluster IP is external, as in kube-proxy. The
	// kind of the address stays cluster IP.
	external := f.isExternal(f.clusterIP)
	if !external {
		w.add(clusterIP)
	}
	if p.external {
		r.setExternal(&w, f, p, s)
		if external {
			w.add(clusterIP)
		}
		r.addExternalRows(&w, f)
	}
	r.rows = w.rows
}

// setExternal sets the verdicts of all frontends except the cluster IP.
func (r *resolver) setExternal(w *rowWriter, f *frontendsOf, p policies, s selection) {
	w.perClient = p.perClient(s)
	if w.perClient {
		w.here = verdictOf(s, s.cluster, s.clusterDraining, masqueradeFrom(policyExternalLocalLocal, f.detector, r.cfg.MasqueradeAll))
		w.elsewhere = verdictOf(s, s.local, s.localDraining, masqueradeFrom(policyExternalLocalRemote, f.detector, r.cfg.MasqueradeAll))
	} else {
		w.all = verdictOf(s, s.cluster, s.clusterDraining, masqueradeFrom(policyExternalCluster, f.detector, r.cfg.MasqueradeAll))
	}
}

// addExternalRows adds the rows of all frontends except the cluster IP.
func (r *resolver) addExternalRows(w *rowWriter, f *frontendsOf) {
	port := w.port.GetPort()
	for _, a := range f.external {
		w.add(spot{a, port, messages.Scope_SCOPE_EXTERNAL, messages.FrontendKind_KIND_EXTERNAL_IP, nil})
	}
	for _, a := range f.loadBalancer {
		at := spot{a, port, messages.Scope_SCOPE_EXTERNAL, messages.FrontendKind_KIND_LOAD_BALANCER_IP, f.allow}
		if f.closed {
			w.row(&at, messages.ClientClass_FROM_ANY, &verdict{action: messages.Action_ACTION_DROP})
		} else {
			w.add(at)
		}
	}
	if hasNodePort(w.port) {
		for _, a := range f.nodes {
			w.add(spot{a, w.port.GetNodePort(), messages.Scope_SCOPE_NODEPORT, messages.FrontendKind_KIND_NODE_PORT, nil})
		}
	}
}

// spot is one frontend of a service port.
type spot struct {
	address address
	port    uint32
	scope   messages.Scope
	kind    messages.FrontendKind
	allow   []string
}

// rowWriter makes the rows of one service port in one block of memory, to save allocations.
type rowWriter struct {
	port     *messages.ServicePort
	affinity uint32
	maglev   bool
	rows     []*messages.Frontend
	block    []messages.Frontend
	// perClient makes two rows for each frontend: verdict "here" for clients on this node,
	// "elsewhere" for remote clients. Without it one row has the verdict "all".
	perClient            bool
	all, here, elsewhere verdict
}

// writer returns the writer of one port, with memory for exactly its rows.
func (r *resolver) writer(f *frontendsOf, port *messages.ServicePort, p policies, s selection) rowWriter {
	external := len(f.external) + len(f.loadBalancer)
	if hasNodePort(port) {
		external += len(f.nodes)
	}
	if p.perClient(s) {
		external *= 2
		if f.isExternal(f.clusterIP) {
			external++
		}
	}
	return rowWriter{
		port:     port,
		affinity: r.service.GetAffinitySeconds(),
		maglev:   r.service.GetMaglev(),
		rows:     slices.Grow(r.rows, external+1),
		block:    make([]messages.Frontend, external+1),
	}
}

// add makes the row or the two rows of one frontend.
func (w *rowWriter) add(at spot) {
	if !w.perClient {
		w.row(&at, messages.ClientClass_FROM_ANY, &w.all)
		return
	}
	w.row(&at, messages.ClientClass_FROM_LOCAL, &w.here)
	w.row(&at, messages.ClientClass_FROM_REMOTE, &w.elsewhere)
}

// row makes one row.
func (w *rowWriter) row(at *spot, from messages.ClientClass, v *verdict) {
	row := &w.block[0]
	w.block = w.block[1:]
	row.Address, row.Port, row.Protocol = at.address.text, at.port, w.port.GetProtocol()
	row.PortName, row.Scope, row.Kind, row.From = w.port.GetName(), at.scope, at.kind, from
	row.Action, row.Backends, row.Draining, row.MasqueradeFrom = v.action, v.backends, v.draining, v.masquerade
	row.AllowSources = at.allow
	if v.action == messages.Action_ACTION_FORWARD {
		row.AffinitySeconds, row.Maglev = w.affinity, w.maglev
	}
	w.rows = append(w.rows, row)
}

// unique orders rows as the view documents it, and keeps one row where two fields or two ports of
// the service claim a frontend. An external IP may be the load-balancer IP too, for example. The
// smaller kind wins, then the earlier port. Source ranges protect the address, so the kept row has
// them in any case.
func unique(rows []*messages.Frontend) []*messages.Frontend {
	slices.SortStableFunc(rows, func(a, b *messages.Frontend) int {
		return cmp.Or(compareFrontend(a, b), cmp.Compare(a.GetKind(), b.GetKind()))
	})
	kept, first := 0, 0
	for _, row := range rows {
		if kept == 0 || compareFrontend(rows[first], row) != 0 {
			first = kept
			rows[kept] = row
			kept++
			continue
		}
		last := rows[kept-1]
		switch {
		case sameClaim(last, row) && last.GetFrom() == messages.ClientClass_FROM_LOCAL && row.GetFrom() == messages.ClientClass_FROM_REMOTE:
			rows[kept] = row
			kept++
		case len(row.GetAllowSources()) > 0:
			guard(rows[first:kept], row.GetAllowSources())
		case closed(row):
			shut(rows[first])
			kept = first + 1
		}
	}
	clear(rows[kept:])
	return rows[:kept]
}

// guard gives source ranges to rows without any.
func guard(rows []*messages.Frontend, allow []string) {
	for _, row := range rows {
		if len(row.GetAllowSources()) == 0 {
			row.AllowSources = allow
		}
	}
}

// closed reports whether a row belongs to a load-balancer address that admits no client: other rows
// drop the packets of some clients only.
func closed(row *messages.Frontend) bool {
	return row.GetKind() == messages.FrontendKind_KIND_LOAD_BALANCER_IP && row.GetFrom() == messages.ClientClass_FROM_ANY &&
		row.GetAction() == messages.Action_ACTION_DROP
}

// shut turns a row into one that drops every packet.
func shut(row *messages.Frontend) {
	row.From, row.Action, row.Backends, row.Draining = messages.ClientClass_FROM_ANY, messages.Action_ACTION_DROP, nil, nil
	row.MasqueradeFrom, row.AffinitySeconds, row.Maglev = nil, 0, false
}

// compareFrontend orders rows by address (as text), port and protocol.
func compareFrontend(a, b *messages.Frontend) int {
	return cmp.Or(
		cmp.Compare(a.GetAddress(), b.GetAddress()),
		cmp.Compare(a.GetPort(), b.GetPort()),
		cmp.Compare(a.GetProtocol(), b.GetProtocol()),
	)
}

// sameClaim reports whether two rows come from the same field and port of the service.
func sameClaim(a, b *messages.Frontend) bool {
	return a.GetKind() == b.GetKind() && a.GetPortName() == b.GetPortName()
}
