package nat

import (
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// VRFTable lists the VRFs that traffic from one VRF may be translated into.
type VRFTable struct {
	VRF, fib uint32
	routes   pool.Pool[vrfRoute]
}

type vrfRoute struct {
	vrf, fib uint32
}

// vrfTable returns the table of a VRF and its index.
func (n *Plugin) vrfTable(vrf uint32) (*VRFTable, uint32) {
	for i, t := range n.VRFTables.All {
		if t.VRF == vrf {
			return t, i
		}
	}
	return nil, pool.None
}

// ChangeVRFRoute adds a VRF to a table or removes it.
func (n *Plugin) ChangeVRFRoute(table, vrf uint32, add bool) int32 {
	t, _ := n.vrfTable(table)
	if t == nil {
		return vnet.RetNoSuchEntry
	}
	for i, r := range t.routes.All {
		if r.vrf != vrf {
			continue
		}
		if add {
			return vnet.RetValueExist
		}
		t.routes.Remove(i)
		return vnet.RetOK
	}
	if !add {
		return vnet.RetNoSuchEntry
	}
	t.routes.Put(vrfRoute{vrf: vrf, fib: n.net.FindOrCreateFIB(0, vrf)})
	return vnet.RetOK
}

// VRFs returns the VRFs of a table.
func (t *VRFTable) VRFs() []uint32 {
	var ids []uint32
	for _, r := range t.routes.All {
		ids = append(ids, r.vrf)
	}
	return ids
}

// ChangeVRFTable adds the table of a VRF or removes it.
func (n *Plugin) ChangeVRFTable(vrf uint32, add bool) int32 {
	t, at := n.vrfTable(vrf)
	switch {
	case t != nil && add:
		return vnet.RetValueExist
	case t != nil:
		n.VRFTables.Remove(at)
	case add:
		n.VRFTables.Put(&VRFTable{VRF: vrf, fib: n.net.FindOrCreateFIB(0, vrf)})
	default:
		return vnet.RetNoSuchEntry
	}
	return vnet.RetOK
}
