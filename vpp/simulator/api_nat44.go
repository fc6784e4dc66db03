package simulator

import (
	"net/netip"
	"strconv"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// defaultFrameQueue is the length of the worker handoff queues.
const defaultFrameQueue = 64

// registerNAT44Config registers the messages about the plugin as a whole, its
// interfaces and its addresses.
func registerNAT44Config(r registry) {
	write(r, natEnableDisable)
	write(r, natForwarding)
	write(r, natSetTimeouts)
	write(r, natSetSessionLimit)
	write(r, natSetMssClamping)
	write(r, natSetWorkers)
	write(r, natSetFqOptions)
	write(r, natIpfix)
	read(r, natShowFqOptions)
	read(r, natGetMssClamping)
	read(r, natWorkerDump)
	read(r, natRunningConfig)
	write(r, natInterfaceFeature)
	read(r, natInterfaceDump)
	write(r, natOutputInterface)
	read(r, natOutputInterfaceGet)
	write(r, natAddressRange)
	read(r, natAddressDump)
	write(r, natInterfaceAddr)
	read(r, natInterfaceAddrDump)
}

func natEnableDisable(c *call, req *nat44_ed.Nat44EdPluginEnableDisable) {
	const unsupported = nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY | nat44_ed.NAT44_IS_CONNECTION_TRACKING
	var retval int32
	switch {
	case !req.Enable:
		retval = c.nat.disable()
	case req.Flags&unsupported != 0:
		retval = retUnsupported
	default:
		retval = c.nat.enable(natConfig{insideVRF: req.InsideVrf, outsideVRF: req.OutsideVrf, sessions: req.Sessions})
	}
	c.reply(&nat44_ed.Nat44EdPluginEnableDisableReply{Retval: retval})
}

func natForwarding(c *call, req *nat44_ed.Nat44ForwardingEnableDisable) {
	c.nat.setForwarding(req.Enable)
	c.reply(&nat44_ed.Nat44ForwardingEnableDisableReply{})
}

func natSetTimeouts(c *call, req *nat44_ed.NatSetTimeouts) {
	c.nat.timeouts = natTimeouts{
		udp: req.UDP, tcpEstablished: req.TCPEstablished, tcpTransitory: req.TCPTransitory, icmp: req.ICMP,
	}
	c.reply(&nat44_ed.NatSetTimeoutsReply{})
}

func natSetSessionLimit(c *call, req *nat44_ed.Nat44SetSessionLimit) {
	c.reply(&nat44_ed.Nat44SetSessionLimitReply{Retval: c.nat.setSessionLimit(req.SessionLimit, req.VrfID)})
}

func natSetMssClamping(c *call, req *nat44_ed.NatSetMssClamping) {
	c.nat.mss = 0
	if req.Enable {
		c.nat.mss = req.MssValue
	}
	c.reply(&nat44_ed.NatSetMssClampingReply{})
}

func natGetMssClamping(c *call, _ *nat44_ed.NatGetMssClamping) {
	c.reply(&nat44_ed.NatGetMssClampingReply{MssValue: c.nat.mss, Enable: c.nat.mss != 0})
}

func natSetWorkers(c *call, req *nat44_ed.NatSetWorkers) {
	retval := retOK
	switch {
	case c.workers < 2:
		retval = retFeatureDisabled
	case req.WorkerMask>>c.workers != 0:
		retval = retInvalidWorker
	}
	c.reply(&nat44_ed.NatSetWorkersReply{Retval: retval})
}

// natWorkerDump lists the NAT workers; VPP has a list of them only from two
// workers on.
func natWorkerDump(c *call, _ *nat44_ed.NatWorkerDump) {
	if c.workers < 2 {
		return
	}
	for n := range c.workers {
		c.reply(&nat44_ed.NatWorkerDetails{WorkerIndex: uint32(n), LcoreID: uint32(n + 1), Name: workerName(n)})
	}
}

// workerName returns the thread name of a worker.
func workerName(n int) string { return "vpp_wk_" + strconv.Itoa(n) }

// natSetFqOptions is accepted only before the plugin is enabled, and with
// workers only before it was ever enabled.
func natSetFqOptions(c *call, req *nat44_ed.Nat44EdSetFqOptions) {
	retval := retOK
	switch {
	case c.nat.enabled:
		retval = retAlreadyEnabled
	case c.workers > 1 && c.nat.wasEnabled:
		retval = 1
	default:
		c.nat.frameQueue = req.FrameQueueNelts
	}
	c.reply(&nat44_ed.Nat44EdSetFqOptionsReply{Retval: retval})
}

func natShowFqOptions(c *call, _ *nat44_ed.Nat44EdShowFqOptions) {
	c.reply(&nat44_ed.Nat44EdShowFqOptionsReply{FrameQueueNelts: c.nat.frameQueue})
}

func natIpfix(c *call, _ *nat44_ed.NatIpfixEnableDisable) {
	c.reply(&nat44_ed.NatIpfixEnableDisableReply{})
}

// natRunningConfig tells the configuration; sessions is 0 while the plugin is
// disabled.
func natRunningConfig(c *call, _ *nat44_ed.Nat44ShowRunningConfig) {
	n := c.nat
	c.reply(&nat44_ed.Nat44ShowRunningConfigReply{
		InsideVrf:          n.config.insideVRF,
		OutsideVrf:         n.config.outsideVRF,
		Sessions:           n.config.sessions,
		TranslationBuckets: buckets(n.perThread),
		ForwardingEnabled:  n.forwarding,
		Timeouts: nat_types.NatTimeouts{
			UDP:            n.timeouts.udp,
			TCPEstablished: n.timeouts.tcpEstablished,
			TCPTransitory:  n.timeouts.tcpTransitory,
			ICMP:           n.timeouts.icmp,
		},
		Flags: nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT,
	})
}

// buckets returns the size of the flow hash for a number of sessions: the
// power of two nearest to 2/5 of it.
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
func roleFlags(i *natInterface) nat_types.NatConfigFlags {
	var flags nat_types.NatConfigFlags
	if i.inside {
		flags |= nat_types.NAT_IS_INSIDE
	}
	if i.outside {
		flags |= nat_types.NAT_IS_OUTSIDE
	}
	return flags
}

func natInterfaceFeature(c *call, req *nat44_ed.Nat44InterfaceAddDelFeature) {
	inside := req.Flags&nat_types.NAT_IS_INSIDE != 0
	var retval int32
	switch {
	case c.iface(uint32(req.SwIfIndex)) == nil:
		retval = retInvalidSwIfIndex
	case req.IsAdd:
		retval = c.nat.addInterface(uint32(req.SwIfIndex), inside)
	default:
		retval = c.nat.delInterface(uint32(req.SwIfIndex), inside)
	}
	c.reply(&nat44_ed.Nat44InterfaceAddDelFeatureReply{Retval: retval})
}

func natInterfaceDump(c *call, _ *nat44_ed.Nat44InterfaceDump) {
	for _, i := range c.nat.inOut.all {
		c.reply(&nat44_ed.Nat44InterfaceDetails{
			Flags: roleFlags(i), SwIfIndex: interface_types.InterfaceIndex(i.swIf),
		})
	}
}

func natOutputInterface(c *call, req *nat44_ed.Nat44EdAddDelOutputInterface) {
	var retval int32
	switch {
	case c.iface(uint32(req.SwIfIndex)) == nil:
		retval = retInvalidSwIfIndex
	case req.IsAdd:
		retval = c.nat.addOutput(uint32(req.SwIfIndex))
	default:
		retval = c.nat.delOutput(uint32(req.SwIfIndex))
	}
	c.reply(&nat44_ed.Nat44EdAddDelOutputInterfaceReply{Retval: retval})
}

// natOutputInterfaceGet answers in pages of outputPage. For an empty set the
// cursor of the reply is memory that nobody wrote: 0 here.
func natOutputInterfaceGet(c *call, req *nat44_ed.Nat44EdOutputInterfaceGet) {
	out := &c.nat.output
	if out.len() == 0 {
		c.reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{})
		return
	}
	cursor, ok := out.next(req.Cursor)
	if !ok {
		c.reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{Retval: retInvalidValue, Cursor: none})
		return
	}
	for sent := 0; ok; sent++ {
		if sent == outputPage {
			c.reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{Retval: retEagain, Cursor: cursor})
			return
		}
		i, _ := out.get(cursor)
		c.reply(&nat44_ed.Nat44EdOutputInterfaceDetails{SwIfIndex: interface_types.InterfaceIndex(i.swIf)})
		cursor, ok = out.next(cursor + 1)
	}
	c.reply(&nat44_ed.Nat44EdOutputInterfaceGetReply{Cursor: none})
}

// outputPage is how many details VPP sends before it lets other work run.
const outputPage = 16

func natAddressRange(c *call, req *nat44_ed.Nat44AddDelAddressRange) {
	retval := c.nat.changeRange(fromIP4(req.FirstIPAddress), fromIP4(req.LastIPAddress),
		req.VrfID, req.Flags&nat_types.NAT_IS_TWICE_NAT != 0, req.IsAdd)
	c.reply(&nat44_ed.Nat44AddDelAddressRangeReply{Retval: retval})
}

func natAddressDump(c *call, _ *nat44_ed.Nat44AddressDump) {
	send := func(a *natAddress, flags nat_types.NatConfigFlags) {
		vrf := none
		if t := c.table4(a.fib); t != nil {
			vrf = t.id
		}
		c.reply(&nat44_ed.Nat44AddressDetails{IPAddress: toIP4(a.addr), Flags: flags, VrfID: vrf})
	}
	for _, a := range c.nat.pool {
		send(a, 0)
	}
	for _, a := range c.nat.twice {
		send(a, nat_types.NAT_IS_TWICE_NAT)
	}
}

func natInterfaceAddr(c *call, req *nat44_ed.Nat44AddDelInterfaceAddr) {
	twice := req.Flags&nat_types.NAT_IS_TWICE_NAT != 0
	var retval int32
	switch {
	case c.iface(uint32(req.SwIfIndex)) == nil:
		retval = retInvalidSwIfIndex
	case req.IsAdd:
		retval = c.nat.follow(uint32(req.SwIfIndex), twice)
	default:
		retval = c.nat.unfollow(uint32(req.SwIfIndex), twice)
	}
	c.reply(&nat44_ed.Nat44AddDelInterfaceAddrReply{Retval: retval})
}

func natInterfaceAddrDump(c *call, _ *nat44_ed.Nat44InterfaceAddrDump) {
	for _, f := range c.nat.followed {
		var flags nat_types.NatConfigFlags
		if f.twice {
			flags = nat_types.NAT_IS_TWICE_NAT
		}
		c.reply(&nat44_ed.Nat44InterfaceAddrDetails{SwIfIndex: interface_types.InterfaceIndex(f.swIf), Flags: flags})
	}
}

// endpoint builds an endpoint from its API parts.
func endpoint(addr [4]byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(addr), port)
}
