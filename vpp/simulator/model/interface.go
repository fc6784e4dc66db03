package model

import (
	"slices"

	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/feature"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerInterface registers the messages of the interface API.
func registerInterface(r Registry) {
	// CreateLoopback makes a loopback with the first free instance number.
	write(r, func(c *Call, req *interfaces.CreateLoopback) {
		index := c.CreateLoopback(req.MacAddress)
		c.Reply(&interfaces.CreateLoopbackReply{SwIfIndex: interface_types.InterfaceIndex(index)})
	})
	// DeleteLoopback refuses interfaces of other kinds.
	write(r, func(c *Call, req *interfaces.DeleteLoopback) {
		retval := vnet.RetInvalidSwIfIndex
		if i := c.Interface(uint32(req.SwIfIndex)); i != nil && i.DevType == vnet.DevLoopback {
			c.DeleteInterface(i)
			retval = vnet.RetOK
		}
		c.Reply(&interfaces.DeleteLoopbackReply{Retval: retval})
	})
	// SwInterfaceSetFlags looks at the admin flag only; the link follows it.
	write(r, func(c *Call, req *interfaces.SwInterfaceSetFlags) {
		retval := vnet.RetInvalidSwIfIndex
		if i := c.Interface(uint32(req.SwIfIndex)); i != nil {
			c.SetAdmin(i, req.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0)
			retval = vnet.RetOK
		}
		c.Reply(&interfaces.SwInterfaceSetFlagsReply{Retval: retval})
	})
	// SwInterfaceAddDelAddress changes the addresses of an interface, and with them the routes of
	// its subnets.
	write(r, func(c *Call, req *interfaces.SwInterfaceAddDelAddress) {
		retval := vnet.RetInvalidSwIfIndex
		if i := c.Interface(uint32(req.SwIfIndex)); i != nil {
			retval = c.changeAddress(i, req)
		}
		c.Reply(&interfaces.SwInterfaceAddDelAddressReply{Retval: retval})
	})
	// SwInterfaceSetTable binds an interface to the table of a VRF, which must exist.
	write(r, func(c *Call, req *interfaces.SwInterfaceSetTable) {
		retval := vnet.RetInvalidSwIfIndex
		if i := c.Interface(uint32(req.SwIfIndex)); i != nil {
			retval = c.BindTable(i, FamilyBit(req.IsIPv6), req.VrfID)
		}
		c.Reply(&interfaces.SwInterfaceSetTableReply{Retval: retval})
	})
	write(r, swInterfaceSetUnnumbered)
	Read(r, swInterfaceDump)
	// SwInterfaceGetTable returns the id of the table of an interface, for one address family.
	Read(r, func(c *Call, req *interfaces.SwInterfaceGetTable) {
		reply := &interfaces.SwInterfaceGetTableReply{Retval: vnet.RetInvalidSwIfIndex, VrfID: vnet.None}
		if i := c.Interface(uint32(req.SwIfIndex)); i != nil {
			fam := FamilyBit(req.IsIPv6)
			reply.Retval, reply.VrfID = vnet.RetOK, c.Tables[fam][i.FIB[fam]].ID
		}
		c.Reply(reply)
	})
	Register(r, ClassSession, wantInterfaceEvents)
}

// changeAddress executes an sw_interface_add_del_address.
func (c *Call) changeAddress(i *vnet.Interface, req *interfaces.SwInterfaceAddDelAddress) int32 {
	if req.DelAll {
		for len(i.Addrs) > 0 {
			c.DelAddress(i, i.Addrs[0])
		}
		return vnet.RetOK
	}
	prefix, ok := FromPrefix(ip_types.Prefix(req.Prefix))
	if !ok {
		return vnet.RetInvalidValue
	}
	if req.IsAdd {
		return c.AddAddress(i, prefix)
	}
	return c.DelAddress(i, prefix)
}

// swInterfaceSetUnnumbered binds an interface to the addresses of another one; the message names
// the lender sw_if_index and the borrower unnumbered_sw_if_index.
func swInterfaceSetUnnumbered(c *Call, req *interfaces.SwInterfaceSetUnnumbered) {
	borrower := c.Interface(uint32(req.UnnumberedSwIfIndex))
	retval := vnet.RetOK
	switch {
	case borrower == nil:
		retval = vnet.RetInvalidSwIfIndex
	case req.IsAdd && c.Interface(uint32(req.SwIfIndex)) == nil:
		retval = vnet.RetInvalidSwIfIndex2
	case req.IsAdd:
		borrower.Borrows = uint32(req.SwIfIndex)
	default:
		borrower.Borrows = vnet.None
	}
	c.Reply(&interfaces.SwInterfaceSetUnnumberedReply{Retval: retval})
}

// swInterfaceDump lists one interface, or all of them for index 0 and ~0. The model has no filter
// by name.
func swInterfaceDump(c *Call, req *interfaces.SwInterfaceDump) {
	index := uint32(req.SwIfIndex)
	if index != vnet.None && index != 0 {
		if i := c.Interface(index); i != nil {
			c.Reply(interfaceDetails(i))
		}
		return
	}
	for _, i := range c.Interfaces.All {
		c.Reply(interfaceDetails(i))
	}
}

// interfaceDetails encodes one interface for a dump.
func interfaceDetails(i *vnet.Interface) *interfaces.SwInterfaceDetails {
	return &interfaces.SwInterfaceDetails{
		SwIfIndex:        interface_types.InterfaceIndex(i.Index),
		SupSwIfIndex:     i.Index,
		L2Address:        i.MAC,
		Flags:            StatusFlags(i.AdminUp, i.LinkUp),
		Type:             interface_types.IF_API_TYPE_HARDWARE,
		LinkMtu:          9000,
		Mtu:              []uint32{9000, 0, 0, 0},
		InterfaceName:    i.Name,
		InterfaceDevType: i.DevType,
	}
}

// wantInterfaceEvents subscribes a client, once, or ends its subscription.
func wantInterfaceEvents(c *Call, req *interfaces.WantInterfaceEvents) {
	_, subscribed := c.Subscribers[c.Client]
	retval := vnet.RetOK
	switch enable := req.EnableDisable != 0; {
	case subscribed == enable:
		retval = vnet.RetInvalidRegistration
	case enable:
		c.Subscribers[c.Client] = req.PID
	default:
		delete(c.Subscribers, c.Client)
	}
	c.Reply(&interfaces.WantInterfaceEventsReply{Retval: retval})
}

// StatusFlags encodes interface states.
func StatusFlags(adminUp, linkUp bool) interface_types.IfStatusFlags {
	var flags interface_types.IfStatusFlags
	if adminUp {
		flags |= interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	if linkUp {
		flags |= interface_types.IF_STATUS_API_FLAG_LINK_UP
	}
	return flags
}

// registerBridge registers the dumps of bridge domains and of proxy ARP, and the feature API.
func registerBridge(r Registry) {
	Read(r, bridgeDomainDump)
	// ProxyArpDump lists the ranges of proxy ARP.
	Read(r, func(c *Call, _ *arp.ProxyArpDump) {
		if c.Proxied.Low.IsValid() {
			c.Reply(&arp.ProxyArpDetails{Proxy: arp.ProxyArp{Low: c.Proxied.Low.As4(), Hi: c.Proxied.High.As4()}})
		}
	})
	// ProxyArpIntfcDump lists the interfaces with proxy ARP.
	Read(r, func(c *Call, _ *arp.ProxyArpIntfcDump) {
		for _, index := range c.Proxied.Interfaces {
			c.Reply(&arp.ProxyArpIntfcDetails{SwIfIndex: index})
		}
	})
	write(r, featureEnableDisable)
	Read(r, featureIsEnabled)
}

// bridgeDomainDump lists one bridge domain, or all for ~0. The virtual interface is among the
// members.
func bridgeDomainDump(c *Call, req *l2.BridgeDomainDump) {
	for _, b := range c.Bridges {
		if req.BdID != vnet.None && req.BdID != b.ID {
			continue
		}
		d := &l2.BridgeDomainDetails{
			BdID: b.ID, Flood: true, UuFlood: true, Forward: true, Learn: true, UuFwdSwIfIndex: interface_types.InterfaceIndex(vnet.None),
			BviSwIfIndex: interface_types.InterfaceIndex(b.Virtual), SwIfDetails: []l2.BridgeDomainSwIf{{SwIfIndex: interface_types.InterfaceIndex(b.Virtual)}},
		}
		for _, m := range b.Members {
			d.SwIfDetails = append(d.SwIfDetails, l2.BridgeDomainSwIf{SwIfIndex: interface_types.InterfaceIndex(m.Index), Shg: m.Group})
		}
		c.Reply(d)
	}
}

// featureEnableDisable puts a node on an arc. It is not idempotent: enabling twice puts the node
// there twice.
func featureEnableDisable(c *Call, req *feature.FeatureEnableDisable) {
	key := vnet.FeatureKey{SwIf: uint32(req.SwIfIndex), Arc: req.ArcName, Node: req.FeatureName}
	retval := vnet.RetOK
	switch {
	case c.Interface(key.SwIf) == nil:
		retval = vnet.RetInvalidSwIfIndex
	case !knownFeature(req.ArcName, req.FeatureName):
		retval = vnet.RetInvalidValue
	default:
		c.SetFeature(key.SwIf, key.Arc, key.Node, req.Enable)
	}
	c.Reply(&feature.FeatureEnableDisableReply{Retval: retval})
}

// featureIsEnabled answers false for a node that is not on the arc, known or not.
func featureIsEnabled(c *Call, req *feature.FeatureIsEnabled) {
	key := vnet.FeatureKey{SwIf: uint32(req.SwIfIndex), Arc: req.ArcName, Node: req.FeatureName}
	// VPP takes an error for a yes: that the node does not exist, or that the arc has no room
	// for the interface yet.
	known := knownFeature(key.Arc, key.Node) || key.Node == lastNode(key.Arc)
	reply := &feature.FeatureIsEnabledReply{IsEnabled: c.Has(key.SwIf, key.Arc, key.Node) || !known || !c.Covers(key.SwIf, key.Arc)}
	if c.Interface(key.SwIf) == nil {
		reply.Retval, reply.IsEnabled = vnet.RetInvalidSwIfIndex, false
	}
	c.Reply(reply)
}

// lastNode is the node at the end of an arc.
func lastNode(arc string) string {
	switch arc {
	case nat.ArcInput:
		return "ip4-lookup"
	case "ip6-unicast":
		return "ip6-lookup"
	default:
		return "interface-output"
	}
}

// knownFeature reports whether a node may be on an arc. The model has the nodes of the plugins that
// it has.
func knownFeature(arc, node string) bool {
	switch arc {
	case nat.ArcInput:
		return slices.Contains([]string{"cnat-input-ip4", nat.NodeIn2out, nat.NodeOut2in, nat.NodeClassify}, node)
	case nat.ArcOutput:
		return slices.Contains([]string{"cnat-output-ip4", nat.NodeOutput}, node)
	case "ip6-unicast":
		return node == "cnat-input-ip6"
	case "ip6-output":
		return node == "cnat-output-ip6"
	}
	return false
}
