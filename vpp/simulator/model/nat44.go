package model

import (
	"net/netip"
	"strconv"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/nat"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerNAT44Config registers the messages about the plugin as a whole, its interfaces and its
// addresses.
func registerNAT44Config(r Registry) {
	write(r, natEnableDisable)
	// Nat44ForwardingEnableDisable is accepted while the plugin is disabled too; enabling it resets
	// the setting.
	write(r, func(c *Call, req *nat44_ed.Nat44ForwardingEnableDisable) {
		c.NAT.SetForwarding(req.Enable)
		c.Reply(&nat44_ed.Nat44ForwardingEnableDisableReply{})
	})
	// NatSetTimeouts takes any value; enabling the plugin resets them.
	write(r, func(c *Call, req *nat44_ed.NatSetTimeouts) {
		c.NAT.Timeouts = nat.Timeouts{
			UDP: req.UDP, TCPEstablished: req.TCPEstablished, TCPTransitory: req.TCPTransitory, ICMP: req.ICMP,
		}
		c.Reply(&nat44_ed.NatSetTimeoutsReply{})
	})
	// Nat44SetSessionLimit changes the limit without touching sessions or mappings, in contrast to
	// the CLI command.
	write(r, func(c *Call, req *nat44_ed.Nat44SetSessionLimit) {
		c.Reply(&nat44_ed.Nat44SetSessionLimitReply{Retval: c.NAT.SetSessionLimit(req.SessionLimit, req.VrfID)})
	})
	write(r, natSetWorkers)
	Read(r, natWorkerDump)
	Read(r, natRunningConfig)
	write(r, natInterfaceFeature)
	// Nat44InterfaceDump lists the interfaces with roles, without output interfaces.
	Read(r, func(c *Call, _ *nat44_ed.Nat44InterfaceDump) {
		for _, i := range c.NAT.InOut.All {
			c.Reply(&nat44_ed.Nat44InterfaceDetails{
				Flags: roleFlags(i), SwIfIndex: interface_types.InterfaceIndex(i.SwIf),
			})
		}
	})
	write(r, natOutputInterface)
	Read(r, natOutputInterfaceGet)
	// Nat44AddDelAddressRange changes the SNAT pool, or the twice-nat pool with its flag.
	write(r, func(c *Call, req *nat44_ed.Nat44AddDelAddressRange) {
		retval := c.NAT.ChangeRange(netip.AddrFrom4(req.FirstIPAddress), netip.AddrFrom4(req.LastIPAddress),
			req.VrfID, req.Flags&nat_types.NAT_IS_TWICE_NAT != 0, req.IsAdd)
		c.Reply(&nat44_ed.Nat44AddDelAddressRangeReply{Retval: retval})
	})
	Read(r, natAddressDump)
}

// natEnableDisable turns the plugin on or off. VPP 25.10 has no modes besides the
// endpoint-dependent one.
func natEnableDisable(c *Call, req *nat44_ed.Nat44EdPluginEnableDisable) {
	const unsupported = nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY | nat44_ed.NAT44_IS_CONNECTION_TRACKING
	var retval int32
	switch {
	case !req.Enable:
		retval = c.NAT.Disable()
	case req.Flags&unsupported != 0:
		retval = vnet.RetUnsupported
	default:
		retval = c.NAT.Enable(nat.Config{InsideVRF: req.InsideVrf, OutsideVRF: req.OutsideVrf, Sessions: req.Sessions})
	}
	c.Reply(&nat44_ed.Nat44EdPluginEnableDisableReply{Retval: retval})
}

// natSetWorkers is refused with fewer than two workers, before the mask is checked.
func natSetWorkers(c *Call, req *nat44_ed.NatSetWorkers) {
	retval := vnet.RetOK
	switch {
	case c.Workers < 2:
		retval = vnet.RetFeatureDisabled
	case req.WorkerMask>>c.Workers != 0:
		retval = vnet.RetInvalidWorker
	default:
		c.NATWorkers = req.WorkerMask
	}
	c.Reply(&nat44_ed.NatSetWorkersReply{Retval: retval})
}

// natWorkerDump lists the NAT workers; VPP has a list of them only from two workers on.
func natWorkerDump(c *Call, _ *nat44_ed.NatWorkerDump) {
	if c.Workers < 2 {
		return
	}
	for n := range c.Workers {
		if c.NATWorkers>>n&1 == 0 {
			continue
		}
		c.Reply(&nat44_ed.NatWorkerDetails{WorkerIndex: uint32(n), LcoreID: uint32(n + 1), Name: workerName(n)})
	}
}

// workerName returns the thread name of a worker.
func workerName(n int) string { return "vpp_wk_" + strconv.Itoa(n) }

// natRunningConfig returns the configuration; sessions is 0 while the plugin is disabled.
func natRunningConfig(c *Call, _ *nat44_ed.Nat44ShowRunningConfig) {
	n := c.NAT
	c.Reply(&nat44_ed.Nat44ShowRunningConfigReply{
		InsideVrf:          n.Config.InsideVRF,
		OutsideVrf:         n.Config.OutsideVRF,
		Sessions:           n.Config.Sessions,
		TranslationBuckets: buckets(n.PerThread),
		ForwardingEnabled:  n.Forwarding,
		Timeouts: nat_types.NatTimeouts{
			UDP:            n.Timeouts.UDP,
			TCPEstablished: n.Timeouts.TCPEstablished,
			TCPTransitory:  n.Timeouts.TCPTransitory,
			ICMP:           n.Timeouts.ICMP,
		},
		Flags: nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT,
	})
}

// buckets returns the size of the flow hash for a number of sessions: the power of two nearest to
// 2/5 of it.
func buckets(sessions uint32) uint32 {
	if sessions == 0 {
		return 0
	}
	want := uint64(float64(sessions) / 2.5)
	lower := uint64(1)
	for lower*2 < want {
		lower *= 2
	}
	if 2*lower < 2*want-lower {
		return uint32(2 * lower)
	}
	return uint32(lower)
}

// roleFlags encodes interface roles.
func roleFlags(i *nat.Interface) nat_types.NatConfigFlags {
	var flags nat_types.NatConfigFlags
	if i.Inside {
		flags |= nat_types.NAT_IS_INSIDE
	}
	if i.Outside {
		flags |= nat_types.NAT_IS_OUTSIDE
	}
	return flags
}

// natInterfaceFeature gives an interface one role per message; both roles need two messages.
func natInterfaceFeature(c *Call, req *nat44_ed.Nat44InterfaceAddDelFeature) {
	inside := req.Flags&nat_types.NAT_IS_INSIDE != 0
	var retval int32
	switch {
	case c.Interface(uint32(req.SwIfIndex)) == nil:
		retval = vnet.RetInvalidSwIfIndex
	case req.IsAdd:
		retval = c.NAT.AddInterface(uint32(req.SwIfIndex), inside)
	default:
		retval = c.NAT.DelInterface(uint32(req.SwIfIndex), inside)
	}
	c.Reply(&nat44_ed.Nat44InterfaceAddDelFeatureReply{Retval: retval})
}

// natOutputInterface makes an interface an output interface (post-routing SNAT).
func natOutputInterface(c *Call, req *nat44_ed.Nat44EdAddDelOutputInterface) {
	var retval int32
	switch {
	case c.Interface(uint32(req.SwIfIndex)) == nil:
		retval = vnet.RetInvalidSwIfIndex
	case req.IsAdd:
		retval = c.NAT.AddOutput(uint32(req.SwIfIndex))
	default:
		retval = c.NAT.DelOutput(uint32(req.SwIfIndex))
	}
	c.Reply(&nat44_ed.Nat44EdAddDelOutputInterfaceReply{Retval: retval})
}

// natOutputInterfaceGet answers in pages of pageSize. For an empty set the cursor of the reply is
// uninitialised memory: 0 here.
func natOutputInterfaceGet(c *Call, req *nat44_ed.Nat44EdOutputInterfaceGet) {
	out := &c.NAT.Output
	if out.Len() == 0 {
		c.Reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{})
		return
	}
	cursor, ok := out.Next(req.Cursor)
	if !ok {
		c.Reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{Retval: vnet.RetInvalidValue, Cursor: vnet.None})
		return
	}
	for sent := 0; ok; sent++ {
		if sent == pageSize {
			c.Reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{Retval: vnet.RetEagain, Cursor: cursor})
			return
		}
		i, _ := out.Get(cursor)
		c.Reply(&nat44_ed.Nat44EdOutputInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(i.SwIf)})
		cursor, ok = out.Next(cursor + 1)
	}
	c.Reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{Cursor: vnet.None})
}

// pageSize is how many details VPP sends before it lets other work run.
const pageSize = 16

// natAddressDump lists the SNAT pool, then the twice-nat pool. An address for all VRFs has the VRF
// ~0.
func natAddressDump(c *Call, _ *nat44_ed.Nat44AddressDump) {
	send := func(a *nat.Address, flags nat_types.NatConfigFlags) {
		vrf := vnet.None
		if t := c.Table4(a.FIB); t != nil {
			vrf = t.ID
		}
		c.Reply(&nat44_ed.Nat44AddressDetails{IPAddress: ToIP4(a.Addr), Flags: flags, VrfID: vrf})
	}
	for _, a := range c.NAT.Pool {
		send(a, 0)
	}
	for _, a := range c.NAT.Twice {
		send(a, nat_types.NAT_IS_TWICE_NAT)
	}
}

// endpoint builds an endpoint from its API parts.
func endpoint(addr [4]byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(addr), port)
}
