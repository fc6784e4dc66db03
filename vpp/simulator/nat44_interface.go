package simulator

import "slices"

// natInterface is an interface with NAT roles.
type natInterface struct {
	swIf            uint32
	inside, outside bool
}

// Feature arcs and nodes of NAT44-ED with at most one worker.
const (
	arcInput     = "ip4-unicast"
	arcOutput    = "ip4-output"
	nodeIn2out   = "nat-pre-in2out"
	nodeOut2in   = "nat-pre-out2in"
	nodeClassify = "nat44-ed-classify"
	nodeOutput   = "nat-pre-in2out-output"
)

// setFeature puts a NAT node on an arc or takes it off. Taking off what is
// not there does nothing.
func (m *model) setFeature(swIf uint32, arc, node string, on bool) {
	key := featureKey{swIf: swIf, arc: arc, node: node}
	switch {
	case on:
		m.features[key]++
	case m.features[key] > 1:
		m.features[key]--
	default:
		delete(m.features, key)
	}
}

// has reports whether a node is on an arc.
func (m *model) has(swIf uint32, arc, node string) bool {
	return m.features[featureKey{swIf: swIf, arc: arc, node: node}] > 0
}

// roleNode returns the node of a single role.
func roleNode(inside bool) string {
	if inside {
		return nodeIn2out
	}
	return nodeOut2in
}

// find returns the record of an interface and its index, or nil.
func find(ifs *pool[*natInterface], swIf uint32) (*natInterface, uint32) {
	for index, i := range ifs.all {
		if i.swIf == swIf {
			return i, index
		}
	}
	return nil, none
}

// addInterface gives an interface a role. With both roles one node classifies
// the packets. Repeating it is harmless.
func (n *nat44) addInterface(swIf uint32, inside bool) int32 {
	if !n.enabled {
		return retUnsupported
	}
	if i, _ := find(&n.output, swIf); i != nil {
		return retValueExist
	}
	i, _ := find(&n.inOut, swIf)
	switch {
	case i == nil:
		n.m.setFeature(swIf, arcInput, roleNode(inside), true)
		i = &natInterface{swIf: swIf}
		n.inOut.put(i)
	case (inside && i.inside) || (!inside && i.outside):
		return retOK
	default:
		n.m.setFeature(swIf, arcInput, roleNode(!inside), false)
		n.m.setFeature(swIf, arcInput, nodeClassify, true)
	}
	n.countFIB(n.fibOf(swIf))
	if inside {
		i.inside = true
		return retOK
	}
	i.outside = true
	n.becomeOutside(swIf)
	return retOK
}

// delInterface takes a role from an interface. For an interface with a single
// role VPP does not look which one it is: the record goes, and so does the
// node of the role that was named, even if it is the other one that exists.
func (n *nat44) delInterface(swIf uint32, inside bool) int32 {
	if !n.enabled {
		return retUnsupported
	}
	i, index := find(&n.inOut, swIf)
	if i == nil {
		return retNoSuchEntry
	}
	if i.inside && i.outside {
		n.m.setFeature(swIf, arcInput, nodeClassify, false)
		n.m.setFeature(swIf, arcInput, roleNode(!inside), true)
		if inside {
			i.inside = false
		} else {
			i.outside = false
		}
	} else {
		n.m.setFeature(swIf, arcInput, roleNode(inside), false)
		n.inOut.remove(index)
	}
	n.uncountFIB(n.fibOf(swIf))
	if !inside {
		n.ceaseOutside(swIf)
	}
	return retOK
}

// addOutput makes an interface an output interface: in2out after routing,
// out2in on input.
func (n *nat44) addOutput(swIf uint32) int32 {
	if !n.enabled {
		return retUnsupported
	}
	if i, _ := find(&n.inOut, swIf); i != nil {
		return retValueExist
	}
	if i, _ := find(&n.output, swIf); i != nil {
		return retValueExist
	}
	n.m.setFeature(swIf, arcInput, nodeOut2in, true)
	n.m.setFeature(swIf, arcOutput, nodeOutput, true)
	n.output.put(&natInterface{swIf: swIf, inside: true, outside: true})
	n.countFIB(n.fibOf(swIf))
	n.becomeOutside(swIf)
	return retOK
}

// delOutput ends addOutput.
func (n *nat44) delOutput(swIf uint32) int32 {
	if !n.enabled {
		return retUnsupported
	}
	i, index := find(&n.output, swIf)
	if i == nil {
		return retNoSuchEntry
	}
	n.m.setFeature(swIf, arcInput, nodeOut2in, false)
	n.m.setFeature(swIf, arcOutput, nodeOutput, false)
	n.output.remove(index)
	n.uncountFIB(n.fibOf(swIf))
	n.ceaseOutside(swIf)
	return retOK
}

// becomeOutside registers every external address on a new outside interface.
func (n *nat44) becomeOutside(swIf uint32) {
	n.countOutside(n.fibOf(swIf))
	for _, a := range n.pool {
		n.addReceive(a.addr, swIf)
	}
	for _, mp := range n.mappings.all {
		n.addReceive(mp.external.Addr(), swIf)
	}
	n.bindPool(swIf)
}

// ceaseOutside withdraws every external address from an interface.
func (n *nat44) ceaseOutside(swIf uint32) {
	n.uncountOutside(n.fibOf(swIf))
	for _, a := range n.pool {
		n.delReceive(a.addr, swIf)
	}
	for _, mp := range n.mappings.all {
		n.delReceive(mp.external.Addr(), swIf)
	}
}

// fibOf returns the ip4 FIB index of an interface.
func (n *nat44) fibOf(swIf uint32) uint32 {
	if i := n.m.iface(swIf); i != nil {
		return i.fib[0]
	}
	return 0
}

// countFIB counts an interface role for a FIB the way VPP does: every role
// adds a record and raises the count of those that are there.
func (n *nat44) countFIB(fib uint32) {
	for i := range n.fibs {
		if n.fibs[i].fib == fib {
			n.fibs[i].refs++
		}
	}
	n.fibs = append(n.fibs, fibCount{fib: fib, refs: 1})
}

// uncountFIB takes a role back. When the first record of the FIB is used up,
// all its sessions expire.
func (n *nat44) uncountFIB(fib uint32) {
	at := slices.IndexFunc(n.fibs, func(c fibCount) bool { return c.fib == fib })
	if at < 0 {
		return
	}
	if n.fibs[at].refs--; n.fibs[at].refs == 0 {
		n.fibs = swapDelete(n.fibs, at)
		n.expireVRF(fib)
	}
}

// countOutside counts an outside interface of a FIB.
func (n *nat44) countOutside(fib uint32) {
	for i := range n.outside {
		if n.outside[i].fib == fib {
			n.outside[i].refs++
			return
		}
	}
	n.outside = append(n.outside, fibCount{fib: fib, refs: 1})
}

// uncountOutside takes an outside interface of a FIB back.
func (n *nat44) uncountOutside(fib uint32) {
	at := slices.IndexFunc(n.outside, func(c fibCount) bool { return c.fib == fib })
	if at < 0 {
		return
	}
	if n.outside[at].refs--; n.outside[at].refs == 0 {
		n.outside = swapDelete(n.outside, at)
	}
}

// tableBound moves an outside interface from one FIB to another.
func (n *nat44) tableBound(swIf, to, from uint32) {
	if !n.enabled || to == from || len(n.outside) == 0 {
		return
	}
	i, _ := find(&n.inOut, swIf)
	if i == nil {
		i, _ = find(&n.output, swIf)
	}
	if i != nil && i.outside {
		n.uncountOutside(from)
		n.countOutside(to)
	}
}

// interfaceGone removes the roles of a deleted interface.
func (n *nat44) interfaceGone(swIf uint32) {
	if !n.enabled {
		return
	}
	if i, _ := find(&n.inOut, swIf); i != nil {
		n.dropRoles(*i)
	}
	if i, _ := find(&n.output, swIf); i != nil {
		n.delOutput(swIf)
	}
}

// dropRoles removes the roles that an interface had.
func (n *nat44) dropRoles(i natInterface) {
	if i.inside {
		n.delInterface(i.swIf, true)
	}
	if i.outside {
		n.delInterface(i.swIf, false)
	}
}

// deleteInterfaces removes all roles for disable.
func (n *nat44) deleteInterfaces() {
	var inOut, output []natInterface
	for _, i := range n.inOut.all {
		inOut = append(inOut, *i)
	}
	for _, i := range n.output.all {
		output = append(output, *i)
	}
	for _, i := range inOut {
		n.dropRoles(i)
	}
	for _, i := range output {
		n.delOutput(i.swIf)
	}
	n.inOut, n.output = pool[*natInterface]{}, pool[*natInterface]{}
}
