package actors

import (
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/heap"
)

// Memory of this process, in bytes, that services need at most while all of their endpoints change.
// Measured as the growth of resident memory with 65,440 frontends of one endpoint, and with 4,144
// frontends of 253 endpoints.
const (
	frontendBytes = 4096
	backendBytes  = 384
)

// Costs returns the bytes that services need of VPP and of this process. cnat are the settings of
// the renderer of IPv6, as in Deps.
func Costs(c *cnat.Config) service.Costs {
	of := func(c heap.Cost) service.Cost {
		return service.Cost{Frontend: c.Row, Backend: c.Backend, Spread: c.Spread, Address: c.Address}
	}
	costs := service.Costs{IPv4: of(heap.NAT44()), Agent: service.Cost{Frontend: frontendBytes, Backend: backendBytes}}
	if c != nil {
		costs.IPv6 = of(heap.CNAT())
		if c.IPv4 {
			costs.IPv4 = costs.IPv6
		}
	}
	return costs
}
