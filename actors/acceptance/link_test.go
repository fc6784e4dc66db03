package acceptance_test

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// write is one message that changes a row in VPP.
type write struct {
	// frontend is "ip:port/PROTO".
	frontend string
	// add says whether something comes or goes.
	add bool
	// row is true for a whole row, false for one backend of it.
	row bool
	// backends are the backends in the message; the deletion of a row has none.
	backends []netip.AddrPort
}

// String shows a write as "+row frontend [backends]".
func (w write) String() string {
	text := map[bool]string{true: "+", false: "-"}[w.add]
	text += map[bool]string{true: "row ", false: "local "}[w.row] + w.frontend
	for _, b := range w.backends {
		text += " " + b.String()
	}
	return text
}

// overheard is the connection of one troupe to VPP, with lists of what it wrote. VPP itself counts
// by message only, not by row.
type overheard struct {
	link.Runner
	mu     sync.Mutex
	writes []write
	routes []netip.Addr
}

func (o *overheard) Do(ctx context.Context, requests []api.Message) ([]link.Result, error) {
	o.mu.Lock()
	for _, request := range requests {
		if w, ok := writeOf(request); ok {
			o.writes = append(o.writes, w)
		}
		if m, ok := request.(*ip.IPRouteAddDelV2); ok && m.Route.Prefix.Len == 32 {
			o.routes = append(o.routes, netip.AddrFrom4(m.Route.Prefix.Address.Un.GetIP4()))
		}
	}
	o.mu.Unlock()
	return o.Runner.Do(ctx, requests)
}

// take returns what was written since the last call.
func (o *overheard) take() []write {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.writes
	o.writes = nil
	return taken
}

// takeRoutes returns the addresses whose routes were written since the last call, once for each
// message.
func (o *overheard) takeRoutes() []netip.Addr {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.routes
	o.routes = nil
	return taken
}

// writeOf recognises the messages that change rows.
func writeOf(request api.Message) (write, bool) {
	switch m := request.(type) {
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		w := write{frontend: frontendText(netip.AddrFrom4(m.ExternalAddr), m.ExternalPort, m.Protocol), add: m.IsAdd, row: true}
		for _, l := range m.Locals {
			if l.Probability > 0 {
				w.backends = append(w.backends, netip.AddrPortFrom(netip.AddrFrom4(l.Addr), l.Port))
			}
		}
		return w, true
	case *nat44_ed.Nat44LbStaticMappingAddDelLocal:
		return write{
			frontend: frontendText(netip.AddrFrom4(m.ExternalAddr), m.ExternalPort, m.Protocol), add: m.IsAdd,
			backends: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4(m.Local.Addr), m.Local.Port)},
		}, true
	default:
		return write{}, false
	}
}

// written lists the frontends that were written, ordered.
func written(writes []write) []string {
	var all []string
	for _, w := range writes {
		all = append(all, w.frontend)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// frontendText is the name of a frontend everywhere: "ip:port/PROTO".
func frontendText(addr netip.Addr, port uint16, proto uint8) string {
	return service.FrontendText(&messages.Frontend{
		Address: addr.String(), Port: uint32(port), Protocol: messages.Protocol(proto),
	})
}
