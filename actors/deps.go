package actors

import (
	"log/slog"
	"time"

	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/addresses"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	sessionsactor "github.com/troupe-vpp/troupe/actors/sessions"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/heap"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/sessions"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Timing holds every interval of the actors. The zero value of a field means its default.
type Timing struct {
	// Retry is the interval of half-open probes: one object of each kind of refusal. Default
	// 900 ms.
	Retry time.Duration
	// Backoff is the first delay after an operation that VPP refused; it doubles up to 30 s.
	// Default 1 s.
	Backoff time.Duration
	// Rediscover is the longest time between two discoveries of VPP's interfaces, because VPP
	// reports no changes of addresses and routes. Default 60 s.
	Rediscover time.Duration
	// RediscoverSoon replaces Rediscover while a pod of this node has no interface, and shortly
	// after a change. Default 1 s.
	RediscoverSoon time.Duration
	// DriftCheck is the longest time between two drift checks of a renderer, unless work or VPP
	// delays them. Default 60 s.
	DriftCheck time.Duration
	// DriftCheckLeast is the shortest time between two drift checks; reading takes a thousandth
	// of the time at most. Default 45 s.
	DriftCheckLeast time.Duration
	// Staleness is the age of the state, while the source does not see changes, above which the
	// node is not ready; negative = no limit. Default 60 s.
	Staleness time.Duration
	// Patience is how long a part may be wrong before the next step of the escalation, and how
	// long the healer then waits for its effect. Default 30 s.
	Patience time.Duration
	// Command is how long a command may take, and how long its rollback. Default 5 s.
	Command time.Duration
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&t.Retry, 900*time.Millisecond)
	set(&t.Backoff, time.Second)
	set(&t.Rediscover, time.Minute)
	set(&t.RediscoverSoon, time.Second)
	set(&t.DriftCheck, render.DriftCheckMost)
	set(&t.DriftCheckLeast, render.DriftCheckLeast)
	set(&t.Staleness, time.Minute)
	set(&t.Patience, 30*time.Second)
	set(&t.Command, 5*time.Second)
	return t
}

// Deps is everything that the bootstrap gives to the troupe. Once the root is spawned it is
// read-only. newTree hands each group of fields to the actors that it is for.
type Deps struct {
	// The node and its services.

	// NodeName is this node's name in Kubernetes.
	NodeName string
	// Feed delivers the state of Kubernetes.
	Feed kube.Feed
	// Serving are the settings of the service semantics.
	Serving service.Config
	// NodeSync is nil where a node stands alone. A restarted nodes actor runs it again, when
	// the run before has returned.
	NodeSync desired.NodeSync

	// The connection to VPP and its interfaces.

	// Link is the connection to VPP.
	Link link.Runner
	// InterfaceEvents carries hints that VPP's interfaces changed; may be nil. One pending hint
	// is enough.
	InterfaceEvents <-chan struct{}
	// Listening returns the ports on which processes of this node listen, which services may
	// not claim from it; nil = none are known.
	Listening func(now time.Time) []string
	// Attachments saves the interfaces of pods that were attached by command; nil = they last
	// as long as the process.
	Attachments interfaces.Store

	// The renderers, external configuration and NAT sessions.

	// NAT44 are the settings of the IPv4 renderer. An unset TwiceNAT is derived from the node's
	// pod CIDR.
	NAT44 nat44.Config
	// CNAT are the settings of the renderer of IPv6; nil = IPv6 is not served. With CNAT.IPv4
	// it serves both families and NAT44 is not used: External and SNAT have no effect then, and
	// there are no NAT sessions.
	CNAT *cnat.Config
	// Routes are the settings of the renderer that refuses frontends without a row. Its
	// networks are Serving.ServiceCIDRs, or else the service networks of the cluster.
	Routes routes.Config
	// Addresses are the settings of the renderer of virtual routers; nil = VPP answers for no
	// load-balancer address.
	Addresses *addresses.Config
	// HeapReserve is how many percent of VPP's main heap rows leave free; 0 = none.
	HeapReserve int
	// Heap makes a reader of VPP's statistics about its heap for each renderer; nil = VPP is
	// asked, at a higher cost.
	Heap func() stats.Source[heap.State]
	// Sessions are the settings of the housekeeping of NAT sessions. Its Min need not be set:
	// the limit of NAT44 counts as well.
	Sessions sessions.Config
	// OtherProtocols says through which interfaces packets enter VPP that are not TCP, UDP or
	// ICMP; nil = only pods and tunnels say it.
	OtherProtocols stats.Source[map[uint32]bool]
	// SessionStats says how full the table of NAT sessions is; nil = VPP is asked, at a higher
	// cost.
	SessionStats stats.Source[sessions.Usage]
	// SessionSigns has hints at lost answers; nil = there are none.
	SessionSigns stats.Source[sessions.Signs]
	// SessionObserver counts NAT sessions; nil = nothing is counted.
	SessionObserver sessionsactor.Observer
	// External watches and saves external configuration; nil = none.
	External external.Sources
	// SNAT are the settings of dynamic SNAT, a layer beneath External.
	SNAT layers.SNAT

	// Results, published outside of the actors.

	// Readiness is where the healer publishes; never nil.
	Readiness *health.Readiness
	// Pending is where introspection publishes since when changes of services wait; nil =
	// nowhere.
	Pending *status.PendingSince
	// Events records Kubernetes Events about services; nil = none are recorded. It must not
	// block.
	Events events.Recorder
	// HealthChecks answers the health-check node ports; nil = they are not answered.
	HealthChecks status.HealthChecks
	// Observer counts; nil = nothing is counted.
	Observer report.Observer
	// Fatal ends the process when no step of the escalation has helped; nil = the process goes
	// on. It must not block.
	Fatal func(error)

	// All actors.

	// Park is how functions of actors wait for each other in a simulation, see runtime.Sim; nil
	// = as goroutines do.
	Park func(ready func() bool)
	// Timing holds the intervals.
	Timing Timing
	// Log is never nil.
	Log *slog.Logger
	// Wrap replaces the behaviour of an actor of a kind in tests; nil = none.
	Wrap func(kind string, b runtime.Behaviour) runtime.Behaviour
}

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
