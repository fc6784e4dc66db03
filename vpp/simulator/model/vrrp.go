package model

import (
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// routerKey names a virtual router.
type routerKey struct {
	swIf uint32
	id   uint8
	ipv6 bool
}

// router is a virtual router. The simulated VPP is alone on its links, so a router that runs is the
// owner at once.
type router struct {
	config  vrrp.VrrpVrConf
	addrs   []netip.Addr
	running bool
}

// registerVRRP registers the messages of the plugin vrrp.
func registerVRRP(r Registry) {
	write(r, vrrpAddDel)
	write(r, vrrpStartStop)
	Read(r, vrrpDump)
	Register(r, ClassSession, wantVRRPEvents)
}

// vrrpAddDel adds or deletes a virtual router; VPP checks priority and interval of a deletion, too.
func vrrpAddDel(c *Call, req *vrrp.VrrpVrAddDel) {
	k := routerKey{uint32(req.SwIfIndex), req.VrID, req.Flags&vrrp.VRRP_API_VR_IPV6 != 0}
	c.Reply(&vrrp.VrrpVrAddDelReply{Retval: c.changeRouter(k, req)})
}

func (c *Call) changeRouter(k routerKey, req *vrrp.VrrpVrAddDel) int32 {
	_, exists := c.routers[k]
	switch {
	case c.Interface(k.swIf) == nil:
		return vnet.RetInvalidSwIfIndex
	case req.Priority == 0 || req.Interval == 0 || req.VrID == 0:
		return vnet.RetInvalidValue
	case req.IsAdd == 0 && !exists:
		return vnet.RetNoSuchEntry
	case req.IsAdd == 0:
		delete(c.routers, k)
		return vnet.RetOK
	case exists:
		return vnet.RetEntryAlreadyExists
	case len(req.Addrs) == 0:
		return vnet.RetInvalidSrcAddress
	}
	v := &router{config: vrrp.VrrpVrConf{SwIfIndex: req.SwIfIndex, VrID: req.VrID, Priority: req.Priority, Interval: req.Interval, Flags: req.Flags}}
	for _, a := range req.Addrs {
		addr := forwarding.FromAddress(a)
		for other, o := range c.routers {
			if other.swIf == k.swIf && other.ipv6 == k.ipv6 && slices.Contains(o.addrs, addr) {
				return vnet.RetAddressInUse
			}
		}
		v.addrs = append(v.addrs, addr)
	}
	c.routers[k] = v
	return vnet.RetOK
}

// vrrpStartStop starts or stops a virtual router; one that is in that state already stays so.
func vrrpStartStop(c *Call, req *vrrp.VrrpVrStartStop) {
	k := routerKey{uint32(req.SwIfIndex), req.VrID, req.IsIPv6 != 0}
	reply := &vrrp.VrrpVrStartStopReply{}
	if c.Interface(k.swIf) == nil {
		reply.Retval = vnet.RetInvalidSwIfIndex
	} else if v := c.routers[k]; v == nil {
		reply.Retval = vnet.RetNoSuchEntry
	} else {
		v.running = req.IsStart != 0
	}
	c.Reply(reply)
}

// vrrpDump lists the virtual routers, of one interface or of all.
func vrrpDump(c *Call, req *vrrp.VrrpVrDump) {
	for _, v := range c.routers {
		if i := req.SwIfIndex; i != 0 && i != ^interface_types.InterfaceIndex(0) && i != v.config.SwIfIndex {
			continue
		}
		d := &vrrp.VrrpVrDetails{Config: v.config, NAddrs: uint8(len(v.addrs))}
		if v.running {
			d.Runtime.State = vrrp.VRRP_API_VR_STATE_MASTER
		}
		for _, a := range v.addrs {
			d.Addrs = append(d.Addrs, forwarding.Address(a))
		}
		c.Reply(d)
	}
}

// wantVRRPEvents subscribes a client; the simulated VPP has no elections and sends no events.
func wantVRRPEvents(c *Call, _ *vrrp.WantVrrpVrEvents) { c.Reply(&vrrp.WantVrrpVrEventsReply{}) }

// describeRouters lists the virtual routers.
func (m *Model) describeRouters() (lines []string) {
	for k, v := range m.routers {
		family := "IPv4"
		if k.ipv6 {
			family = "IPv6"
		}
		lines = append(lines, fmt.Sprintf("%d/%s on %s priority %d interval %d running %t %v", k.id, family, m.NameOf(k.swIf), v.config.Priority, v.config.Interval, v.running, v.addrs))
	}
	return lines
}
