package handlers

import (
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
)

// registerBridge registers the dumps of bridge domains and of proxy ARP.
func registerBridge(r Registry) {
	Read(r, bridgeDomainDump)
	Read(r, proxyARPDump)
	Read(r, proxyARPInterfaceDump)
}

// bridgeDomainDump lists one bridge domain, or all for ~0. The virtual interface is among the
// members.
func bridgeDomainDump(c *Call, req *l2.BridgeDomainDump) {
	for _, b := range c.Bridges {
		if req.BdID != pool.None && req.BdID != b.ID {
			continue
		}
		d := &l2.BridgeDomainDetails{
			BdID: b.ID, Flood: true, UuFlood: true, Forward: true, Learn: true, UuFwdSwIfIndex: interface_types.InterfaceIndex(pool.None),
			BviSwIfIndex: interface_types.InterfaceIndex(b.Virtual), SwIfDetails: []l2.BridgeDomainSwIf{{SwIfIndex: interface_types.InterfaceIndex(b.Virtual)}},
		}
		for _, m := range b.Members {
			d.SwIfDetails = append(d.SwIfDetails, l2.BridgeDomainSwIf{SwIfIndex: interface_types.InterfaceIndex(m.Index), Shg: m.Group})
		}
		c.Reply(d)
	}
}

// proxyARPDump lists the ranges of proxy ARP.
func proxyARPDump(c *Call, _ *arp.ProxyArpDump) {
	if c.Proxied.Low.IsValid() {
		c.Reply(&arp.ProxyArpDetails{Proxy: arp.ProxyArp{Low: c.Proxied.Low.As4(), Hi: c.Proxied.High.As4()}})
	}
}

// proxyARPInterfaceDump lists the interfaces with proxy ARP.
func proxyARPInterfaceDump(c *Call, _ *arp.ProxyArpIntfcDump) {
	for _, index := range c.Proxied.Interfaces {
		c.Reply(&arp.ProxyArpIntfcDetails{SwIfIndex: index})
	}
}
