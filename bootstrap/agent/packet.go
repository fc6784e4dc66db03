package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// Packet satisfies api.Reader. It reads the rows of the services that claim the address, and of no
// other service.
func (b backend) Packet(ctx context.Context, source, destination string) (*api.Packet, error) {
	p, err := parsePacket(source, destination)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	w, err := b.packetWorld(ctx)
	if err != nil {
		return nil, err
	}
	page, err := ask[*status.ServicesPage](ctx, b.agent.system, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil, err
	}
	for _, s := range page.Services {
		if !claims(s.GetView(), p.Destination.Addr()) {
			continue
		}
		w.views = append(w.views, s.GetView())
		if w.details[s.GetKey()], err = b.Service(ctx, s.GetKey()); err != nil {
			return nil, err
		}
	}
	w.faults = b.faults(page)
	out := explainPacket(p, w)
	out.Read = page.Read
	if out.Class == service.ClassRemote || out.Class == api.ClassUnknown {
		out.Because = append(b.answering(ctx, p.Destination.Addr()), out.Because...)
	}
	return out, nil
}

// packetWorld is this node, without services.
func (b backend) packetWorld(ctx context.Context) (*packetWorld, error) {
	serving, err := b.agent.cfg.Services.Serving()
	if err != nil {
		return nil, err
	}
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	if len(serving.ServiceCIDRs) == 0 {
		serving.ServiceCIDRs = service.Networks(world.Node.GetServiceCidrs())
	}
	serving.ClusterCIDRs = serving.PodNetworks(world.Node.GetNodes())
	node := desired.NodeContext(world.Node.GetSelf(), world.Interfaces.GetNodeAddresses())
	return &packetWorld{node: node, config: serving, details: map[string]*api.ServiceDetail{}}, nil
}

// packetWorld is the state that decides about packets on this node.
type packetWorld struct {
	// views are the views of at least the services that claim the destination's address.
	views []*messages.ServiceView
	node  *messages.NodeContext
	// config of the service semantics.
	config service.Config
	// details are the services of the views, by key.
	details map[string]*api.ServiceDetail
	faults  faults
}

// parsePacket reads a packet from its parts: "10.1.1.3" and "10.96.0.1:80/TCP".
func parsePacket(source, destination string) (service.Packet, error) {
	from, err := netip.ParseAddr(source)
	if err != nil {
		return service.Packet{}, fmt.Errorf("source %q is not an address", source)
	}
	to, protocol, err := service.ParseFrontendText(destination)
	if err != nil {
		return service.Packet{}, fmt.Errorf("destination %q: expected ADDRESS:PORT/TCP, /UDP or /SCTP", destination)
	}
	if from.Unmap().Is4() != to.Addr().Is4() {
		return service.Packet{}, fmt.Errorf("source %s and destination %s are of different address families", source, destination)
	}
	return service.Packet{Source: from.Unmap(), Destination: to, Protocol: protocol}, nil
}

// claims reports whether a view has a frontend at an address.
func claims(view *messages.ServiceView, where netip.Addr) bool {
	text := where.String()
	return slices.ContainsFunc(view.GetFrontends(), func(f *messages.Frontend) bool { return f.GetAddress() == text })
}

// explainPacket returns how this node handles the first packet of a connection: the frontend that
// decides, the new destination, and the rows in VPP for it. It is pure.
func explainPacket(p service.Packet, w *packetWorld) *api.Packet {
	table := service.NewTable(w.views, w.node, w.config)
	v := table.Verdict(p)
	destination := p.Destination.String() + "/" + service.ProtocolWord(p.Protocol)
	out := &api.Packet{
		Source: p.Source.String(), Destination: destination, Class: table.Class(p.Source), Action: v.Word(), Service: v.Owner,
		Because: because(&p, &v, w), Backends: []api.PacketBackend{}, Others: []api.PacketOther{},
		Wanted: []api.Row{}, InVPP: []api.Row{}, Approximations: []api.FrontendApproximation{},
	}
	known := func(n netip.Prefix) bool { return n.Addr().Is4() == p.Source.Is4() }
	if out.Class == service.ClassRemote && !slices.ContainsFunc(w.config.ClusterCIDRs, known) {
		out.Class = api.ClassUnknown
		out.Because = append(out.Because, "no cluster CIDR is known (services.clusterCIDRs): VPP recognises a pod of this node by its interface, "+
			"and serves it like a client of this node")
	}
	if v.Row != nil {
		row := api.Frontends(&messages.ServiceView{Key: v.Owner, Frontends: []*messages.Frontend{v.Row}})[0]
		out.Frontend = &row
	}
	out.Others = others(destination, out.Class, &v, w.views)
	if v.Owner != "" {
		owner := w.details[v.Owner]
		out.Wanted, out.InVPP = at(destination, owner.Rendered), at(destination, owner.InVPP)
		for _, a := range owner.Approximations {
			if a.Frontend == destination || a.Frontend == "" {
				out.Approximations = append(out.Approximations, a)
			}
		}
	}
	out.VPP = standing(out)
	out.Backends = backends(&v, out.InVPP)
	for i := range out.Backends {
		if at, err := netip.ParseAddrPort(out.Backends[i].Address); err == nil {
			out.Backends[i].Fault = w.faults[at.Addr().String()]
		}
	}
	return out
}

// because names the rule that has decided.
func because(p *service.Packet, v *service.Verdict, w *packetWorld) []string {
	where := p.Destination.Addr()
	switch {
	case !v.Service:
		return []string{fmt.Sprintf("no service has %s, and it is not in the service CIDRs: VPP routes the packet like any other", where)}
	case v.Row == nil && v.Owner == "":
		return []string{fmt.Sprintf("no service has %s, which is in the service CIDRs", where)}
	case v.Row == nil:
		return []string{fmt.Sprintf("%s is the cluster IP of %s, which has no port %d/%s there: %s", where, v.Owner, p.Destination.Port(),
			service.ProtocolWord(p.Protocol), strings.Join(ports(v.Owner, where, w.views), ", "))}
	}
	allow := v.Row.GetAllowSources()
	switch {
	case v.Action == messages.Action_ACTION_DROP && v.Row.GetAction() != v.Action && len(allow) == 0:
		return []string{"another service that claims the address does not allow the source"}
	case v.Action == messages.Action_ACTION_DROP && v.Row.GetAction() != v.Action:
		return []string{"the source is outside of the allowed networks " + strings.Join(allow, ", ")}
	case v.Action == messages.Action_ACTION_DROP:
		return []string{"the traffic policy is Local and no endpoint is on this node"}
	case v.Action == messages.Action_ACTION_REJECT:
		return []string{"the service has no usable endpoint"}
	}
	reasons := []string{"it is a frontend of " + v.Owner + " for clients: " + service.Word(v.Row.GetFrom())}
	if s := v.Row.GetAffinitySeconds(); s > 0 {
		reasons = append(reasons, fmt.Sprintf("affinity: within %d s the same client gets the same endpoint", s))
	}
	return reasons
}

// ports are the frontends of a service at an address, "80/TCP".
func ports(key string, where netip.Addr, views []*messages.ServiceView) (out []string) {
	for _, view := range views {
		for _, f := range view.GetFrontends() {
			text := fmt.Sprintf("%d/%s", f.GetPort(), service.ProtocolWord(f.GetProtocol()))
			if view.GetKey() == key && f.GetAddress() == where.String() && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// others are the frontends with the packet's destination that do not decide, each with the reason.
func others(destination, class string, v *service.Verdict, views []*messages.ServiceView) []api.PacketOther {
	out := []api.PacketOther{}
	for _, view := range views {
		for _, f := range view.GetFrontends() {
			if f == v.Row || service.FrontendText(f) != destination {
				continue
			}
			why := v.Owner + " has the address: its claim comes first"
			if view.GetKey() == v.Owner {
				why = "for clients: " + service.Word(f.GetFrom()) + "; this one is " + class
			}
			out = append(out, api.PacketOther{Service: view.GetKey(), From: service.Word(f.GetFrom()), Action: service.Word(f.GetAction()), Why: why})
		}
	}
	return out
}

// at selects the rows of a destination.
func at(destination string, rows []api.Row) []api.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r api.Row) bool { return r.VIP != destination })
}

// standing compares the rows in VPP with the desired rows. It returns the worst result.
func standing(p *api.Packet) string {
	if len(p.Wanted)+len(p.InVPP) == 0 {
		return api.NoRow
	}
	for _, r := range slices.Concat(p.Wanted, p.InVPP) {
		find := func(rows []api.Row) *api.Row {
			if i := slices.IndexFunc(rows, func(o api.Row) bool { return o.Renderer == r.Renderer && o.VIP == r.VIP }); i >= 0 {
				return &rows[i]
			}
			return nil
		}
		if s := api.Standing(find(p.Wanted), find(p.InVPP), false); s != api.AsWanted {
			return s
		}
	}
	return api.AsWanted
}

// backends are the endpoints that Kubernetes asks for and the backends in VPP, with their shares of
// new connections.
func backends(v *service.Verdict, held []api.Row) []api.PacketBackend {
	out := []api.PacketBackend{}
	for _, b := range v.Backends {
		out = append(out, api.PacketBackend{Address: service.BackendText(b), Share: 1 / float64(len(v.Backends)), SourceReplaced: v.Masquerades(b)})
	}
	total := uint32(0)
	for _, r := range held {
		for _, l := range r.Locals {
			total += l.Weight
		}
	}
	for _, r := range held {
		for _, l := range r.Locals {
			if total == 0 || l.Weight == 0 {
				continue // a pad gets no connection
			}
			i := slices.IndexFunc(out, func(b api.PacketBackend) bool { return b.Address == l.Address })
			if i < 0 {
				i = len(out)
				out = append(out, api.PacketBackend{Address: l.Address})
			}
			out[i].ShareInVPP += float64(l.Weight) / float64(total)
		}
	}
	return out
}
