package nat

import (
	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// vrfTable lists the VRFs that traffic from one VRF may be translated into.
type vrfTable struct {
	Vrf, fib uint32
	routes   pool.Pool[vrfRoute]
}

type vrfRoute struct {
	vrf, fib uint32
}

// vrfTable returns the table of a VRF and its index.
func (n *Plugin) vrfTable(vrf uint32) (*vrfTable, uint32) {
	for i, t := range n.VrfTables.All {
		if t.Vrf == vrf {
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

// Vrfs returns the VRFs of a table.
func (t *vrfTable) Vrfs() []uint32 {
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
		n.VrfTables.Remove(at)
	case add:
		n.VrfTables.Put(&vrfTable{Vrf: vrf, fib: n.net.FindOrCreateFIB(0, vrf)})
	default:
		return vnet.RetNoSuchEntry
	}
	return vnet.RetOK
}
