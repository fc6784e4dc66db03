package nat

import (
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// Interface is an interface with NAT roles.
type Interface struct {
	SwIf            uint32
	Inside, Outside bool
}

// Feature arcs and nodes of NAT44-ED with at most one worker.
const (
	ArcInput     = "ip4-unicast"
	ArcOutput    = "ip4-output"
	NodeIn2out   = "nat-pre-in2out"
	NodeOut2in   = "nat-pre-out2in"
	NodeClassify = "nat44-ed-classify"
	NodeOutput   = "nat-pre-in2out-output"
)

// roleNode returns the node of a single role.
func roleNode(inside bool) string {
	if inside {
		return NodeIn2out
	}
	return NodeOut2in
}

// find returns the record of an interface and its index, or nil.
func find(ifs *vnet.Pool[*Interface], swIf uint32) (*Interface, uint32) {
	for index, i := range ifs.All {
		if i.SwIf == swIf {
			return i, index
		}
	}
	return nil, vnet.None
}

// AddInterface gives an interface a role. With both roles one node classifies the packets.
// Repeating it is harmless.
func (n *Plugin) AddInterface(swIf uint32, inside bool) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	if i, _ := find(&n.Output, swIf); i != nil {
		return vnet.RetValueExist
	}
	i, _ := find(&n.InOut, swIf)
	switch {
	case i == nil:
		n.net.SetFeature(swIf, ArcInput, roleNode(inside), true)
		i = &Interface{SwIf: swIf}
		n.InOut.Put(i)
	case (inside && i.Inside) || (!inside && i.Outside):
		return vnet.RetOK
	default:
		n.net.SetFeature(swIf, ArcInput, roleNode(!inside), false)
		n.net.SetFeature(swIf, ArcInput, NodeClassify, true)
	}
	n.countFIB(n.fibOf(swIf))
	if inside {
		i.Inside = true
		return vnet.RetOK
	}
	i.Outside = true
	n.becomeOutside(swIf)
	return vnet.RetOK
}

// DelInterface takes a role from an interface. For an interface with a single role VPP does not
// look which one it is: the record goes, and so does the node of the role that was named, even if
// it is the other one that exists.
func (n *Plugin) DelInterface(swIf uint32, inside bool) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	i, index := find(&n.InOut, swIf)
	if i == nil {
		return vnet.RetNoSuchEntry
	}
	if i.Inside && i.Outside {
		n.net.SetFeature(swIf, ArcInput, NodeClassify, false)
		n.net.SetFeature(swIf, ArcInput, roleNode(!inside), true)
		if inside {
			i.Inside = false
		} else {
			i.Outside = false
		}
	} else {
		n.net.SetFeature(swIf, ArcInput, roleNode(inside), false)
		n.InOut.Remove(index)
	}
	n.uncountFIB(n.fibOf(swIf))
	if !inside {
		n.ceaseOutside(swIf)
	}
	return vnet.RetOK
}

// AddOutput makes an interface an output interface: in2out after routing, out2in on input.
func (n *Plugin) AddOutput(swIf uint32) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	if i, _ := find(&n.InOut, swIf); i != nil {
		return vnet.RetValueExist
	}
	if i, _ := find(&n.Output, swIf); i != nil {
		return vnet.RetValueExist
	}
	n.net.SetFeature(swIf, ArcInput, NodeOut2in, true)
	n.net.SetFeature(swIf, ArcOutput, NodeOutput, true)
	n.Output.Put(&Interface{SwIf: swIf, Inside: true, Outside: true})
	n.countFIB(n.fibOf(swIf))
	n.becomeOutside(swIf)
	return vnet.RetOK
}

// DelOutput ends AddOutput.
func (n *Plugin) DelOutput(swIf uint32) int32 {
	if !n.Enabled {
		return vnet.RetUnsupported
	}
	i, index := find(&n.Output, swIf)
	if i == nil {
		return vnet.RetNoSuchEntry
	}
	n.net.SetFeature(swIf, ArcInput, NodeOut2in, false)
	n.net.SetFeature(swIf, ArcOutput, NodeOutput, false)
	n.Output.Remove(index)
	n.uncountFIB(n.fibOf(swIf))
	n.ceaseOutside(swIf)
	return vnet.RetOK
}

// becomeOutside registers every external address on a new outside interface.
func (n *Plugin) becomeOutside(swIf uint32) {
	n.countOutside(n.fibOf(swIf))
	for _, a := range n.Pool {
		n.addReceive(a.Addr, swIf)
	}
	for _, mp := range n.Mappings.All {
		n.addReceive(mp.External.Addr(), swIf)
	}
	n.bindPool(swIf)
}

// ceaseOutside withdraws every external address from an interface.
func (n *Plugin) ceaseOutside(swIf uint32) {
	n.uncountOutside(n.fibOf(swIf))
	for _, a := range n.Pool {
		n.delReceive(a.Addr, swIf)
	}
	for _, mp := range n.Mappings.All {
		n.delReceive(mp.External.Addr(), swIf)
	}
}

// fibOf returns the ip4 FIB index of an interface.
func (n *Plugin) fibOf(swIf uint32) uint32 {
	if i := n.net.Interface(swIf); i != nil {
		return i.FIB[0]
	}
	return 0
}

// countFIB counts an interface role for a FIB the way VPP does: every role adds a record and raises
// the count of the existing ones.
func (n *Plugin) countFIB(fib uint32) {
	for i := range n.fibs {
		if n.fibs[i].fib == fib {
			n.fibs[i].refs++
		}
	}
	n.fibs = append(n.fibs, fibCount{fib: fib, refs: 1})
}

// uncountFIB takes a role back. When the first record of the FIB is used up, all its sessions
// expire.
func (n *Plugin) uncountFIB(fib uint32) {
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
func (n *Plugin) countOutside(fib uint32) {
	for i := range n.outside {
		if n.outside[i].fib == fib {
			n.outside[i].refs++
			return
		}
	}
	n.outside = append(n.outside, fibCount{fib: fib, refs: 1})
}

// uncountOutside takes an outside interface of a FIB back.
func (n *Plugin) uncountOutside(fib uint32) {
	at := slices.IndexFunc(n.outside, func(c fibCount) bool { return c.fib == fib })
	if at < 0 {
		return
	}
	if n.outside[at].refs--; n.outside[at].refs == 0 {
		n.outside = swapDelete(n.outside, at)
	}
}

// TableBound moves an outside interface from one FIB to another.
func (n *Plugin) TableBound(swIf, to, from uint32) {
	if !n.Enabled || to == from || len(n.outside) == 0 {
		return
	}
	i, _ := find(&n.InOut, swIf)
	if i == nil {
		i, _ = find(&n.Output, swIf)
	}
	if i != nil && i.Outside {
		n.uncountOutside(from)
		n.countOutside(to)
	}
}

// InterfaceGone removes the roles of a deleted interface.
func (n *Plugin) InterfaceGone(swIf uint32) {
	if !n.Enabled {
		return
	}
	if i, _ := find(&n.InOut, swIf); i != nil {
		n.dropRoles(*i)
	}
	if i, _ := find(&n.Output, swIf); i != nil {
		n.DelOutput(swIf)
	}
}

// dropRoles removes the roles that an interface had.
func (n *Plugin) dropRoles(i Interface) {
	if i.Inside {
		n.DelInterface(i.SwIf, true)
	}
	if i.Outside {
		n.DelInterface(i.SwIf, false)
	}
}

// deleteInterfaces removes all roles for disable.
func (n *Plugin) deleteInterfaces() {
	var inOut, output []Interface
	for _, i := range n.InOut.All {
		inOut = append(inOut, *i)
	}
	for _, i := range n.Output.All {
		output = append(output, *i)
	}
	for _, i := range inOut {
		n.dropRoles(i)
	}
	for _, i := range output {
		n.DelOutput(i.SwIf)
	}
	n.InOut, n.Output = vnet.Pool[*Interface]{}, vnet.Pool[*Interface]{}
}
