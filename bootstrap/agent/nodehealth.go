package agent

import (
	"sync/atomic"
	"time"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
)

// nodeSeen is the last state of this node. It is immutable; nil = the source has not delivered.
type nodeSeen struct {
	first          time.Time // when the source delivered for the first time
	known, leaving bool
}

// eligible reports whether new connections may come to the node, as far as is known.
func (n *nodeSeen) eligible() bool { return n == nil || !n.leaving }

// noteNode keeps the state of this node; nil = the source has no such object. The source calls it, one call at a time.
func (a *Agent) noteNode(self *messages.Node) {
	next := &nodeSeen{first: time.Now(), known: self != nil, leaving: self.GetLeaving()}
	if last := a.node.Load(); last != nil {
		next.first = last.first
	}
	a.node.Store(next)
}

// lastSync is when the IPv4 renderer last brought VPP up to date; zero = never.
type lastSync struct{ at atomic.Int64 }

func (l *lastSync) load() time.Time {
	if nanos := l.at.Load(); nanos != 0 {
		return time.Unix(0, nanos)
	}
	return time.Time{}
}

// observer is the metrics, and somebody who looks at the clock.
type observer struct {
	*metrics.Metrics
	updated *lastSync
}

// Synced satisfies actors.Observer.
func (o observer) Synced(renderer string, took time.Duration, full bool) {
	o.updated.at.Store(time.Now().UnixNano())
	o.Metrics.Synced(renderer, took, full)
}

// nodeState is what the health of this node depends on. Only what stands between a change and VPP counts: neither an API server nor an etcd
// that is away makes a node unhealthy that serves what it knows of, or load balancers would empty a whole cluster for it.
func (a *Agent) nodeState() healthcheck.NodeState {
	state := healthcheck.NodeState{Families: map[messages.IPFamily]healthcheck.SyncState{
		messages.IPFamily_IPV4: {QueuedSince: a.queuedSince(), LastUpdated: a.updated.load()},
	}}
	if seen := a.node.Load(); seen != nil {
		state.Known, state.Leaving = seen.known, seen.leaving
	}
	return state
}

// queuedSince is since when VPP does not hold what the source said; zero = it does, or the source has said nothing. A service in quarantine
// does not count: one service that cannot be handled, on every node alike, must not make all of them unhealthy.
func (a *Agent) queuedSince() time.Time {
	seen := a.node.Load()
	if seen == nil {
		return time.Time{}
	}
	oldest := a.lag.Oldest(a.inQuarantine)
	for _, p := range a.readiness.Load().Parts {
		if p.OK || p.Name == "watch" || p.Name == "nodes" {
			continue
		}
		since := p.Since
		if since.Before(seen.first) {
			since = seen.first
		}
		if oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// inQuarantine reports whether the actor of a service was put aside.
func (a *Agent) inQuarantine(key string) bool {
	actor, ok := a.system.Actor(actors.PathService(key))
	return ok && actor.State == runtime.StateQuarantined
}

// serveHealth begins to answer load balancers and the kubelet. An address that is taken is told and tried again.
func (a *Agent) serveHealth() error {
	address := a.cfg.API.HealthzBindAddress
	if address == "" {
		return nil
	}
	a.nodePort = healthcheck.NewNodeServer(healthcheck.NodeServerConfig{
		Address: address, Handler: a.keepsUp, Log: a.log.With("part", "healthcheck"),
		OnProblem: func(err error) { a.events.Record(events.NodeHealth(a.cfg.NodeName, address, err)) },
	})
	a.own("node health server", a.nodePort.Run)
	return nil
}

// HealthAddress is where load balancers ask for the health of the node, "ip:port"; "" = nowhere, or the address is taken.
func (a *Agent) HealthAddress() string {
	if a.nodePort == nil {
		return ""
	}
	return a.nodePort.Address()
}
