package backend

import (
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/messages"
)

// faulty makes a service failed that has endpoints in the network of an interface with a fault: VPP
// holds its rows, and answers of these endpoints do not come back.
func faulty(out *api.Service, view *messages.ServiceView, interfaces []*messages.Interface) {
	for _, i := range interfaces {
		if (out.State == api.ServiceInSync || out.State == api.ServicePartly) && leadsTo(i, view) {
			out.State, out.Served, out.Error = api.ServiceFailed, api.ServedPartly, "endpoints behind "+i.GetName()+": "+i.GetFault()
		}
	}
}

// leadsTo reports whether an endpoint of a view is in a network of the interface.
func leadsTo(i *messages.Interface, view *messages.ServiceView) bool {
	return slices.ContainsFunc(i.GetAddresses(), func(text string) bool {
		network, err := netip.ParsePrefix(text)
		return err == nil && slices.ContainsFunc(view.GetFrontends(), func(f *messages.Frontend) bool {
			return slices.ContainsFunc(f.GetBackends(), func(b *messages.Backend) bool {
				a, err := netip.ParseAddr(b.GetAddress())
				return err == nil && network.Contains(a)
			})
		})
	})
}
