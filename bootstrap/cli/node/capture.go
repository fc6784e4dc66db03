package node

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/cli/look"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/capture"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// captured is a packet with the verdict of the agent.
type captured struct {
	capture.Packet
	// Expected is the verdict of `explain --packet`; "" = the agent has none.
	Expected string `json:"expected,omitempty"`
}

// captureResult is the output of `troupe capture`.
type captureResult struct {
	Service string     `json:"service"`
	Packets []captured `json:"packets"`
	// Traced is the number of packets that VPP has traced, including packets of other services.
	Traced int `json:"traced"`
}

// NewCapture returns `troupe capture`.
func NewCapture(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "capture NAMESPACE/NAME", Short: "Follow real packets of a service through VPP", Args: cobra.ExactArgs(1), ValidArgsFunction: look.CompleteServices,
		Long: `Trace packets in VPP. For each packet of the service the command shows the nodes of
VPP's graph in plain words, and the expectation of the agent. Run it on the machine with VPP's
socket. VPP traces the next packets at each input, also packets of other services, at most --scan
for each input and thread. At the end, also after Ctrl-C, the command clears the trace. It refuses to
run while VPP traces packets for another user, and does not clear a trace that has such packets.
VPP does not tell whether another user has armed a trace that has no packets yet: it ends with the
trace of this command, unless that has no packets either.`,
		Example: "  troupe capture shop/web --packets 2",
	}
	l := look.NewUnwatched(cmd)
	socket := cmd.Flags().String("vpp-api-socket", config.Defaults().VPP.APISocket, "path of VPP's API socket")
	o := capture.Options{}
	cmd.Flags().IntVar(&o.Most, "packets", 3, "end after this number of packets of the service")
	cmd.Flags().IntVar(&o.Scan, "scan", 100, "number of packets that VPP traces for each input and thread, 1 to 1000")
	cmd.Flags().StringSliceVar(&o.Inputs, "input", nil, "nodes of VPP's graph where packets enter; default: the input nodes of all drivers")
	cmd.Flags().BoolVar(&o.Replace, "replace", false, "clear the trace of another user")
	wait := cmd.Flags().Duration("time", 10*time.Second, "end after this time")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Scan < 1 || o.Scan > 1000 || o.Most < 1 || *wait <= 0 {
			return cli.Usagef("expected --scan from 1 to 1000, --packets from 1 on, and a --time")
		}
		path, err := look.ServicePath(args[0])
		if err != nil {
			return err
		}
		c, err := l.Client(cmd.Context())
		if err != nil {
			return err
		}
		var service api.ServiceDetail
		if err := c.Get(cmd.Context(), path, nil, &service); err != nil {
			return err
		}
		frontends := frontendsOf(&service)
		if len(frontends) == 0 {
			return fmt.Errorf("service %s has no frontend of TCP or UDP: troupe explain %s", service.Key, service.Key)
		}
		o.Match = func(p *capture.Packet) bool { return frontendOf(frontends, p) != "" }
		result := captureResult{Service: service.Key, Packets: []captured{}}
		var packets []capture.Packet
		err = withVPP(cmd.Context(), *socket, func(ctx context.Context, _ *messages.LinkState, vpp link.Caller) (err error) {
			ctx, cancel := context.WithTimeout(ctx, *wait)
			defer cancel()
			packets, result.Traced, err = capture.Run(ctx, vpp, o)
			return err
		})
		if err != nil {
			return fmt.Errorf("capture at VPP %s: %w", *socket, err)
		}
		asking := context.WithoutCancel(cmd.Context()) // after Ctrl-C what was captured is shown
		for i := range packets {
			result.Packets = append(result.Packets, captured{packets[i], expected(asking, c, frontends, &packets[i])})
		}
		return l.Out.Print(std.Out, result, func(t *cli.Columns) { captureTable(t, &result) })
	}
	return cmd
}

// frontendsOf are the frontends of a service with recognisable packets, by "ip:port/PROTO".
func frontendsOf(s *api.ServiceDetail) map[string]netip.AddrPort {
	out := map[string]netip.AddrPort{}
	for i := range s.Wanted {
		text, protocol, _ := strings.Cut(s.Wanted[i].Frontend, "/")
		if address, err := netip.ParseAddrPort(text); err == nil && (protocol == "TCP" || protocol == "UDP") {
			out[s.Wanted[i].Frontend] = address
		}
	}
	return out
}

// frontendOf is the frontend of a packet; "" = the packet belongs to no frontend of the map.
func frontendOf(frontends map[string]netip.AddrPort, p *capture.Packet) string {
	for name, address := range frontends {
		if p.Of(address, name[strings.LastIndexByte(name, '/')+1:]) {
			return name
		}
	}
	return ""
}

// expected asks the agent for its verdict on a packet. "" = the packet is an answer, which the
// agent does not explain.
func expected(ctx context.Context, c *cli.Client, frontends map[string]netip.AddrPort, p *capture.Packet) string {
	name := frontendOf(frontends, p)
	source, err := netip.ParseAddrPort(p.Source)
	if err != nil || p.Destination+"/"+p.Protocol != name {
		return ""
	}
	var e api.Packet
	if err := c.Get(ctx, "packet", url.Values{"source": {source.Addr().String()}, "destination": {name}}, &e); err != nil {
		return "unknown: " + err.Error()
	}
	var to []string
	for _, b := range e.Backends {
		to = append(to, b.Address)
	}
	slices.Sort(to)
	text := e.Action
	if len(to) > 0 {
		text += " to " + strings.Join(to, " or ")
		if !slices.Contains(to, p.LeftDestination) {
			text += "; the packet went to " + cmp.Or(p.LeftDestination, "nowhere")
		}
	}
	return text
}

// captureTable prints each packet.
func captureTable(c *cli.Columns, r *captureResult) {
	for i := range r.Packets {
		p := &r.Packets[i]
		c.Section(fmt.Sprintf("Packet %d: %s %s -> %s", i+1, p.Protocol, p.Source, p.Destination))
		c.Row("NODE", "WHAT IT DOES", "TRACE")
		for _, s := range p.Steps {
			trace := ""
			if len(s.Trace) > 0 {
				trace = s.Trace[0]
			}
			c.Row(s.Node, s.Words, trace)
		}
		c.Section(fmt.Sprintf("VPP: %s, as %s -> %s", p.Verdict, p.LeftSource, p.LeftDestination))
		c.Paragraph("Expected: " + cmp.Or(p.Expected, "nothing is known of answers") + "\n")
	}
	c.Section(fmt.Sprintf("%d of the service %s among %d packets that VPP has traced", len(r.Packets), r.Service, r.Traced))
}
