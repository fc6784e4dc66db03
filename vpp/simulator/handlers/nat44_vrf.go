package handlers

import "go.fd.io/govpp/binapi/nat44_ed"

// registerNAT44VRF registers the messages about VRF routes.
func registerNAT44VRF(r Registry) {
	write(r, natAddDelVrfTable)
	write(r, natAddDelVrfRoute)
	Read(r, natVrfTablesDump)
	Read(r, natVrfTablesV2Dump)
}

// natAddDelVrfTable adds or deletes the table of a VRF.
func natAddDelVrfTable(c *Call, req *nat44_ed.Nat44EdAddDelVrfTable) {
	c.Reply(&nat44_ed.Nat44EdAddDelVrfTableReply{Retval: c.NAT.ChangeVRFTable(req.TableVrfID, req.IsAdd)})
}

// natAddDelVrfRoute adds or deletes a VRF in the table of another one.
func natAddDelVrfRoute(c *Call, req *nat44_ed.Nat44EdAddDelVrfRoute) {
	c.Reply(&nat44_ed.Nat44EdAddDelVrfRouteReply{Retval: c.NAT.ChangeVRFRoute(req.TableVrfID, req.VrfID, req.IsAdd)})
}

// natVrfTablesDump leaves the table's own VRF out and the listed ones in host byte order, as VPP
// does.
func natVrfTablesDump(c *Call, _ *nat44_ed.Nat44EdVrfTablesDump) {
	for _, t := range c.NAT.VRFTables.All {
		ids := t.VRFs()
		for i, id := range ids {
			ids[i] = id>>24 | id>>8&0xff00 | id<<8&0xff0000 | id<<24
		}
		c.Reply(&nat44_ed.Nat44EdVrfTablesDetails{NVrfIds: uint32(len(ids)), VrfIds: ids})
	}
}

// natVrfTablesV2Dump answers with the details of the first version, whose message id VPP puts on
// them.
func natVrfTablesV2Dump(c *Call, _ *nat44_ed.Nat44EdVrfTablesV2Dump) {
	for _, t := range c.NAT.VRFTables.All {
		ids := t.VRFs()
		c.Reply(&nat44_ed.Nat44EdVrfTablesDetails{TableVrfID: t.VRF, NVrfIds: uint32(len(ids)), VrfIds: ids})
	}
}
