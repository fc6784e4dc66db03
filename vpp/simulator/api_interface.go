package simulator

import (
	"go.fd.io/govpp/binapi/af_packet"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/tapv2"
)

// registerInterface registers the messages of the interface, tapv2 and
// af_packet APIs.
func registerInterface(r registry) {
	write(r, createLoopback)
	write(r, createLoopbackInstance)
	write(r, deleteLoopback)
	write(r, swInterfaceSetFlags)
	write(r, swInterfaceAddDelAddress)
	write(r, swInterfaceSetTable)
	write(r, swInterfaceSetUnnumbered)
	write(r, swInterfaceTagAddDel)
	read(r, swInterfaceDump)
	read(r, swInterfaceGetTable)
	read(r, swInterfaceGetMacAddress)
	read(r, swInterfaceTapV2Dump)
	read(r, afPacketDump)
	register(r, classSession, wantInterfaceEvents)
}

func createLoopback(c *call, req *interfaces.CreateLoopback) {
	index, retval := c.createLoopback(req.MacAddress, false, 0)
	c.reply(&interfaces.CreateLoopbackReply{Retval: retval, SwIfIndex: interface_types.InterfaceIndex(index)})
}

func createLoopbackInstance(c *call, req *interfaces.CreateLoopbackInstance) {
	index, retval := c.createLoopback(req.MacAddress, req.IsSpecified, req.UserInstance)
	c.reply(&interfaces.CreateLoopbackInstanceReply{Retval: retval, SwIfIndex: interface_types.InterfaceIndex(index)})
}

func deleteLoopback(c *call, req *interfaces.DeleteLoopback) {
	retval := retInvalidSwIfIndex
	if i := c.iface(uint32(req.SwIfIndex)); i != nil && i.devType == devLoopback {
		c.deleteInterface(i)
		retval = retOK
	}
	c.reply(&interfaces.DeleteLoopbackReply{Retval: retval})
}

func swInterfaceSetFlags(c *call, req *interfaces.SwInterfaceSetFlags) {
	retval := retInvalidSwIfIndex
	if i := c.iface(uint32(req.SwIfIndex)); i != nil {
		c.setAdmin(i, req.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0)
		retval = retOK
	}
	c.reply(&interfaces.SwInterfaceSetFlagsReply{Retval: retval})
}

func swInterfaceAddDelAddress(c *call, req *interfaces.SwInterfaceAddDelAddress) {
	retval := retInvalidSwIfIndex
	if i := c.iface(uint32(req.SwIfIndex)); i != nil {
		retval = c.changeAddress(i, req)
	}
	c.reply(&interfaces.SwInterfaceAddDelAddressReply{Retval: retval})
}

// changeAddress does what an sw_interface_add_del_address asks for.
func (m *model) changeAddress(i *swInterface, req *interfaces.SwInterfaceAddDelAddress) int32 {
	if req.DelAll {
		for len(i.addrs) > 0 {
			m.delAddress(i, i.addrs[0])
		}
		return retOK
	}
	prefix, ok := fromPrefix(ip_types.Prefix(req.Prefix))
	if !ok {
		return retInvalidValue
	}
	if req.IsAdd {
		return m.addAddress(i, prefix)
	}
	return m.delAddress(i, prefix)
}

func swInterfaceSetTable(c *call, req *interfaces.SwInterfaceSetTable) {
	retval := retInvalidSwIfIndex
	if i := c.iface(uint32(req.SwIfIndex)); i != nil {
		retval = c.bindTable(i, familyBit(req.IsIPv6), req.VrfID)
	}
	c.reply(&interfaces.SwInterfaceSetTableReply{Retval: retval})
}

// swInterfaceSetUnnumbered binds an interface to the addresses of another
// one; the message names the lender sw_if_index and the borrower
// unnumbered_sw_if_index.
func swInterfaceSetUnnumbered(c *call, req *interfaces.SwInterfaceSetUnnumbered) {
	borrower := c.iface(uint32(req.UnnumberedSwIfIndex))
	retval := retOK
	switch {
	case borrower == nil:
		retval = retInvalidSwIfIndex
	case req.IsAdd && c.iface(uint32(req.SwIfIndex)) == nil:
		retval = retInvalidSwIfIndex2
	case req.IsAdd:
		borrower.borrows = uint32(req.SwIfIndex)
	default:
		borrower.borrows = none
	}
	c.reply(&interfaces.SwInterfaceSetUnnumberedReply{Retval: retval})
}

func swInterfaceTagAddDel(c *call, req *interfaces.SwInterfaceTagAddDel) {
	i := c.iface(uint32(req.SwIfIndex))
	retval := retOK
	switch {
	case i == nil:
		retval = retInvalidSwIfIndex
	case !req.IsAdd:
		i.tag = ""
	case req.Tag == "":
		retval = retInvalidValue
	default:
		i.tag = clip(req.Tag)
	}
	c.reply(&interfaces.SwInterfaceTagAddDelReply{Retval: retval})
}

// swInterfaceDump lists one interface, or all of them for index 0 and ~0, or
// those whose name contains the filter regardless of case. The filter makes
// VPP ignore the index.
func swInterfaceDump(c *call, req *interfaces.SwInterfaceDump) {
	index := uint32(req.SwIfIndex)
	if !req.NameFilterValid && index != none && index != 0 {
		if i := c.iface(index); i != nil {
			c.reply(interfaceDetails(i))
		}
		return
	}
	for _, i := range c.interfaces.all {
		if !req.NameFilterValid || matchesFilter(i.name, req.NameFilter) {
			c.reply(interfaceDetails(i))
		}
	}
}

// interfaceDetails encodes one interface for a dump.
func interfaceDetails(i *swInterface) *interfaces.SwInterfaceDetails {
	return &interfaces.SwInterfaceDetails{
		SwIfIndex:        interface_types.InterfaceIndex(i.index),
		SupSwIfIndex:     i.index,
		L2Address:        i.mac,
		Flags:            statusFlags(i.adminUp, i.linkUp),
		Type:             interface_types.IF_API_TYPE_HARDWARE,
		LinkMtu:          9000,
		Mtu:              []uint32{9000, 0, 0, 0},
		InterfaceName:    i.name,
		InterfaceDevType: i.devType,
		Tag:              i.tag,
	}
}

func swInterfaceGetTable(c *call, req *interfaces.SwInterfaceGetTable) {
	reply := &interfaces.SwInterfaceGetTableReply{Retval: retInvalidSwIfIndex, VrfID: none}
	if i := c.iface(uint32(req.SwIfIndex)); i != nil {
		fam := familyBit(req.IsIPv6)
		reply.Retval, reply.VrfID = retOK, c.tables[fam][i.fib[fam]].id
	}
	c.reply(reply)
}

func swInterfaceGetMacAddress(c *call, req *interfaces.SwInterfaceGetMacAddress) {
	reply := &interfaces.SwInterfaceGetMacAddressReply{Retval: retInvalidSwIfIndex}
	if i := c.iface(uint32(req.SwIfIndex)); i != nil {
		reply.Retval, reply.MacAddress = retOK, i.mac
	}
	c.reply(reply)
}

func swInterfaceTapV2Dump(c *call, req *tapv2.SwInterfaceTapV2Dump) {
	for _, i := range c.interfaces.all {
		if i.devType != devTap || (uint32(req.SwIfIndex) != none && uint32(req.SwIfIndex) != i.index) {
			continue
		}
		c.reply(&tapv2.SwInterfaceTapV2Details{
			SwIfIndex:     i.index,
			ID:            i.instance,
			TxRingSz:      1024,
			RxRingSz:      1024,
			DevName:       i.name,
			HostIfName:    i.hostName,
			HostNamespace: i.hostNamespace,
		})
	}
}

func afPacketDump(c *call, _ *af_packet.AfPacketDump) {
	for _, i := range c.interfaces.all {
		if i.devType == devAfPacket {
			c.reply(&af_packet.AfPacketDetails{
				SwIfIndex:  interface_types.InterfaceIndex(i.index),
				HostIfName: i.hostName,
			})
		}
	}
}
