package look

import (
	"fmt"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// explainedPacket is a packet with a reading of VPP.
type explainedPacket struct {
	*api.Packet
	reading
}

// compare takes a reading of VPP. The shares in VPP are not known where it differs.
func (p *explainedPacket) compare(r reading) {
	p.reading = r
	p.VPP = r.standing(p.Destination, p.VPP)
	if len(r.Differences) > 0 {
		p.InVPP = []api.Row{}
		for i := range p.Backends {
			p.Backends[i].ShareInVPP = 0
		}
	}
}

// packetTable prints what happens to a packet.
func packetTable(c *cli.Columns, p *explainedPacket) {
	c.Row("Packet:", p.Source+" -> "+p.Destination)
	c.Row("Client:", p.Class)
	c.Row("Action:", p.Action)
	if f := p.Frontend; f != nil {
		port := ""
		if f.Port != "" {
			port = ", port " + f.Port
		}
		c.Row("Frontend:", fmt.Sprintf("%s of %s%s, for clients: %s", f.Kind, p.Service, port, f.From))
	}
	for _, reason := range p.Because {
		c.Row("Because:", reason)
	}
	vpp := p.VPP
	if vpp == api.NoRow && p.Action == "none" {
		vpp = "no row, and none is needed"
	}
	c.Row("Row in VPP:", vpp)
	p.table(c)
	p.repairs(c)
	if len(p.Backends) > 0 {
		c.Section("Destination becomes one of")
		c.Row("ENDPOINT", "SHARE", "SHARE IN VPP", "SOURCE")
	}
	for _, b := range p.Backends {
		source := "kept"
		if b.SourceReplaced {
			source = "an address of this node"
		}
		inVPP := percent(b.ShareInVPP)
		if len(p.Differences) > 0 {
			inVPP = "unknown"
		}
		cells := []any{b.Address, percent(b.Share), inVPP, source}
		if b.Fault != "" {
			cells = append(cells, b.Fault)
		}
		c.Row(cells...)
	}
	if len(p.InVPP) > 0 {
		c.Section("In VPP")
		RowsTable(c, p.InVPP)
	}
	c.Table("Frontends that do not decide", p.Others)
	c.Table("Approximations", p.Approximations)
}

// percent formats a share.
func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
