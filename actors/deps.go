package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// NodeSync is what the nodes actor needs of package cluster; *cluster.Syncer satisfies it.
type NodeSync interface {
	// Run works until ctx ends; out gets a complete state each time something changed, from one goroutine.
	Run(ctx context.Context, out func(*messages.ClusterState)) error
	// SetNodes tells what Kubernetes says about nodes. It never blocks; the latest value wins.
	SetNodes(*messages.NodeInput)
	// Publish tells which VPP addresses ("ip/len") this node wants to be known by. It never blocks; the latest value wins.
	Publish(addresses []string)
}

// Link is what the dataplane actors need of package link; *link.Link satisfies it.
type Link interface {
	link.Caller
	// Run keeps VPP connected until ctx ends; on gets every change, from one goroutine.
	Run(ctx context.Context, on func(*messages.LinkState)) error
}

// HealthChecks is what introspection needs of the servers of health-check node ports; *healthcheck.Servers satisfies it.
type HealthChecks interface {
	// Set tells everything that should be answered. It never blocks; the latest value wins.
	Set([]healthcheck.Check)
}

// Observer is told what metrics count. Its methods are called from actors and must not block.
type Observer interface {
	// Synced is called when a renderer has brought changes of some services into VPP: how long it took from the first to the last
	// message to VPP, and whether it was a full pass (after a read of VPP) or an incremental one.
	Synced(renderer string, took time.Duration, full bool)
	// Programmed is called once per endpoint change that reached VPP, with the time since Kubernetes stamped it.
	Programmed(latency time.Duration)
	// Operations is called with the outcome of operations on VPP.
	Operations(renderer string, succeeded, failed, unknown int)
	// Healed is called with what was done about something that was wrong with a part: the rung of the ladder ("key", "object", "downstream",
	// "full", "subtree", "exit") and how often.
	Healed(part, rung string, n int)
	// Drifted is called with the number of things that VPP did not hold as a renderer knew: somebody else has been there.
	Drifted(renderer string, n int)
	// InputErrors is called with the number of problems in the input of all services, whenever it changes.
	InputErrors(n int)
}

// Timing holds every interval of the actors. The zero value of a field means its default.
type Timing struct {
	// Retry is how long a sender waits for an acknowledgement before it repeats itself, and the interval at which one of what VPP refused is tried
	// again. Default 900 ms: a second is what mending may take.
	Retry time.Duration
	// Rediscover is the longest time between two looks at VPP's interfaces: addresses and routes have no events. Default 5 s.
	Rediscover time.Duration
	// Audit is the longest time between two drift checks of a renderer, unless work or VPP keeps it from that, and the interval at which
	// everybody is told again what became of him. Default 60 s.
	Audit time.Duration
	// AuditLeast is the shortest time between two drift checks; reading takes a thousandth of the time at most. Default 900 ms.
	AuditLeast time.Duration
	// Digest is the interval of the comparisons between source, registry and introspection: two of them, and what was lost between these is said
	// again. Default 400 ms.
	Digest time.Duration
	// Backoff is the first delay after an operation that VPP refused; it doubles up to 30 s. Default 1 s.
	Backoff time.Duration
	// Patience is how long a part may be wrong before the healer does something about it, and how long it then waits for the effect.
	// Default 30 s.
	Patience time.Duration
	// Command is how long a command may take, and how long taking it back. Default 5 s.
	Command time.Duration
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&t.Retry, 900*time.Millisecond)
	set(&t.Rediscover, 5*time.Second)
	set(&t.Audit, time.Minute)
	set(&t.AuditLeast, 900*time.Millisecond)
	set(&t.Digest, 400*time.Millisecond)
	set(&t.Backoff, time.Second)
	set(&t.Patience, 30*time.Second)
	set(&t.Command, 5*time.Second)
	return t
}

// Deps is everything the troupe is given by the bootstrap. It is read-only once the root is spawned.
type Deps struct {
	// NodeName is this node's name in Kubernetes.
	NodeName string
	// Source says what Kubernetes wants. A restarted watch runs it again, when the run before has returned: each run delivers from the
	// beginning, and may count its generations anew.
	Source kube.Source
	// Serving are the settings of the service semantics.
	Serving service.Config
	// Link is the connection to VPP.
	Link Link
	// InterfaceEvents carries hints that VPP's interfaces changed; may be nil. One pending hint is enough.
	InterfaceEvents <-chan struct{}
	// NAT44 are the settings of the IPv4 renderer. An unset TwiceNAT is derived from the node's pod CIDR.
	NAT44 nat44.Config
	// Sessions are the settings of the housekeeping of NAT sessions. Its Min need not be set: the limit of NAT44 counts as well.
	Sessions sessions.Config
	// SessionStats says how full the table of NAT sessions is; nil = VPP is asked, which costs it more.
	SessionStats SessionStats
	// SessionObserver counts NAT sessions; nil = nobody does.
	SessionObserver SessionObserver
	// Routes are the settings of the renderer that refuses what has no row; the networks are Serving.ServiceCIDRs.
	Routes routes.Config
	// External keeps and reads external configuration; nil = there is none.
	External External
	// SNAT are the settings of dynamic SNAT, a layer beneath External.
	SNAT external.SNAT
	// NodeSync is nil where a node stands alone. A restarted nodes actor runs it again, when the run before has returned.
	NodeSync NodeSync
	// Attachments keeps which interface is that of which pod, as it was told; nil = only as long as the process lives.
	Attachments AttachmentStore
	// Readiness is where the healer publishes; never nil.
	Readiness *Readiness
	// Lag is where introspection publishes since when changes of services wait; nil = nobody wants to know.
	Lag *Lag
	// Events records Kubernetes Events about services; nil = nobody does. It must not block.
	Events events.Recorder
	// HealthChecks answers the health-check node ports; nil = nobody does.
	HealthChecks HealthChecks
	// Observer counts; nil = nobody does.
	Observer Observer
	// Fatal ends the process, when nothing else has helped; nil = it goes on. It must not block.
	Fatal func(error)
	// Park is how functions of actors wait for each other in a simulation, see runtime.Sim; nil = as goroutines do.
	Park func(ready func() bool)
	// Timing holds the intervals.
	Timing Timing
	// Log is never nil.
	Log *slog.Logger

	lanes struct{ source, nodes, link, attachments, external lane }
	wrap  func(kind string, b runtime.Behaviour) runtime.Behaviour // set by tests
}
