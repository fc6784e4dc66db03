package bootstrap

import (
	"fmt"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/show"
)

// packetTable prints what happens to a packet.
func packetTable(c *columns, p *api.Packet) {
	c.row("Packet:", p.Source+" -> "+p.Destination)
	c.row("Client:", p.Class)
	c.row("Action:", p.Action)
	if f := p.Frontend; f != nil {
		port := ""
		if f.Port != "" {
			port = ", port " + f.Port
		}
		c.row("Frontend:", fmt.Sprintf("%s of %s%s, for clients: %s", f.Kind, p.Service, port, f.From))
	}
	for _, reason := range p.Because {
		c.row("Because:", reason)
	}
	vpp := p.VPP
	if vpp == show.NoRow && p.Action == "none" {
		vpp = "no row, and none is needed"
	}
	c.row("Row in VPP:", vpp)
	if len(p.Backends) > 0 {
		c.section("Destination becomes one of")
		c.row("ENDPOINT", "SHARE", "SHARE IN VPP", "SOURCE")
	}
	for _, b := range p.Backends {
		source := "kept"
		if b.SourceReplaced {
			source = "an address of this node"
		}
		c.row(b.Address, percent(b.Share), percent(b.ShareInVPP), source)
	}
	if len(p.InVPP) > 0 {
		c.section("In VPP")
		rowsTable(c, p.InVPP)
	}
	if len(p.Others) > 0 {
		c.section("Frontends that do not decide")
		c.row("SERVICE", "FROM", "ACTION", "WHY")
	}
	for _, o := range p.Others {
		c.row(o.Service, o.From, o.Action, o.Why)
	}
	approximationsTable(c, p.Approximations)
}

// percent formats a share.
func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
