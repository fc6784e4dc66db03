package simulator

import "go.fd.io/govpp/binapi/nat44_ed"

// vrfTable lists the VRFs that traffic from one VRF may be translated into.
type vrfTable struct {
	vrf, fib uint32
	routes   pool[vrfRoute]
}

type vrfRoute struct {
	vrf, fib uint32
}

// registerNAT44VRF registers the messages about VRF routes.
func registerNAT44VRF(r registry) {
	write(r, natAddDelVrfTable)
	write(r, natAddDelVrfRoute)
	read(r, natVrfTablesDump)
	read(r, natVrfTablesV2Dump)
}

// vrfTable returns the table of a VRF and its index.
func (n *nat44) vrfTable(vrf uint32) (*vrfTable, uint32) {
	for i, t := range n.vrfTables.all {
		if t.vrf == vrf {
			return t, i
		}
	}
	return nil, none
}

func natAddDelVrfTable(c *call, req *nat44_ed.Nat44EdAddDelVrfTable) {
	t, at := c.nat.vrfTable(req.TableVrfID)
	retval := retOK
	switch {
	case t != nil && req.IsAdd:
		retval = retValueExist
	case t != nil:
		c.nat.vrfTables.remove(at)
	case req.IsAdd:
		c.nat.vrfTables.put(&vrfTable{vrf: req.TableVrfID, fib: c.findOrCreateFIB(0, req.TableVrfID)})
	default:
		retval = retNoSuchEntry
	}
	c.reply(&nat44_ed.Nat44EdAddDelVrfTableReply{Retval: retval})
}

func natAddDelVrfRoute(c *call, req *nat44_ed.Nat44EdAddDelVrfRoute) {
	c.reply(&nat44_ed.Nat44EdAddDelVrfRouteReply{Retval: c.nat.changeVRFRoute(req.TableVrfID, req.VrfID, req.IsAdd)})
}

// changeVRFRoute adds a VRF to a table or removes it.
func (n *nat44) changeVRFRoute(table, vrf uint32, add bool) int32 {
	t, _ := n.vrfTable(table)
	if t == nil {
		return retNoSuchEntry
	}
	for i, r := range t.routes.all {
		if r.vrf != vrf {
			continue
		}
		if add {
			return retValueExist
		}
		t.routes.remove(i)
		return retOK
	}
	if !add {
		return retNoSuchEntry
	}
	t.routes.put(vrfRoute{vrf: vrf, fib: n.m.findOrCreateFIB(0, vrf)})
	return retOK
}

// vrfs returns the VRFs of a table.
func (t *vrfTable) vrfs() []uint32 {
	var ids []uint32
	for _, r := range t.routes.all {
		ids = append(ids, r.vrf)
	}
	return ids
}

// natVrfTablesDump leaves the table's own VRF out and the listed ones in host
// byte order, as VPP does.
func natVrfTablesDump(c *call, _ *nat44_ed.Nat44EdVrfTablesDump) {
	for _, t := range c.nat.vrfTables.all {
		ids := t.vrfs()
		for i, id := range ids {
			ids[i] = id>>24 | id>>8&0xff00 | id<<8&0xff0000 | id<<24
		}
		c.reply(&nat44_ed.Nat44EdVrfTablesDetails{NVrfIds: uint32(len(ids)), VrfIds: ids})
	}
}

// natVrfTablesV2Dump answers with the details of the first version, whose
// message id VPP puts on them.
func natVrfTablesV2Dump(c *call, _ *nat44_ed.Nat44EdVrfTablesV2Dump) {
	for _, t := range c.nat.vrfTables.all {
		ids := t.vrfs()
		c.reply(&nat44_ed.Nat44EdVrfTablesDetails{TableVrfID: t.vrf, NVrfIds: uint32(len(ids)), VrfIds: ids})
	}
}
