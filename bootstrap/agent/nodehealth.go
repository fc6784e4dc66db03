package agent

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/bootstrap/page"
	"github.com/troupe-vpp/troupe/kube/events"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// nodeSeen is the latest state of this node's Node object. It is immutable; nil = the source has
// not delivered any.
type nodeSeen struct {
	first          time.Time // of the first delivery
	known, leaving bool
}

// noteNode records the Node object of this node; nil = there is none. Only the goroutine of the
// source calls it.
func (a *Agent) noteNode(self *messages.Node) {
	next := &nodeSeen{first: time.Now(), known: self != nil, leaving: self.GetLeaving()}
	if last := a.node.Load(); last != nil {
		next.first = last.first
	}
	a.node.Store(next)
}

// lastSync is the time of the latest pass of a renderer; zero = none.
type lastSync struct{ at atomic.Int64 }

// load returns the time of the latest pass; zero = none.
func (l *lastSync) load() time.Time {
	if nanos := l.at.Load(); nanos != 0 {
		return time.Unix(0, nanos)
	}
	return time.Time{}
}

// observer passes reports of renderers to the metrics, the health of the node and the page.
type observer struct {
	*metrics.Metrics
	updated *lastSync
	history *page.History
}

func (o observer) Programmed(p report.Programming) {
	o.Metrics.Programmed(p)
	o.history.Programmed(time.Now(), p.Latency)
}

func (o observer) Synced(renderer string, took time.Duration, full bool) {
	o.updated.at.Store(time.Now().UnixNano())
	o.history.Synced(time.Now())
	o.Metrics.Synced(renderer, took, full)
}

// sessionObserver passes reports about sessions to the metrics, and the begin and end of an alarm
// about answers to the Events of the Node. Only the sessions actor calls it.
type sessionObserver struct {
	*metrics.Metrics
	agent   *Agent
	alarmed bool
}

func (o *sessionObserver) Unanswered(silent []sessions.Silent, alarm string) {
	if o.alarmed != (alarm != "") {
		o.agent.events.Record(events.Answers(o.agent.cfg.NodeName, alarm))
	}
	o.alarmed = alarm != ""
	o.Metrics.Unanswered(silent, alarm)
}

// nodeState is the input of the node's health. Only the components between a change and VPP count.
// A node that serves its last known state stays healthy without an API server or etcd. Otherwise
// load balancers would drain a whole cluster for one failed API server.
func (a *Agent) nodeState() healthcheck.NodeState {
	state := healthcheck.NodeState{Families: map[messages.IPFamily]healthcheck.SyncState{
		messages.IPFamily_IPV4: {QueuedSince: a.queuedSince(), LastUpdated: a.updated.load()},
	}}
	if seen := a.node.Load(); seen != nil {
		state.Known, state.Leaving = seen.known, seen.leaving
		state.LostSince = a.readiness.Load().LostSince()
	}
	return state
}

// queuedSince is the time since which VPP lacks a change of the source; zero = it lacks none, or
// the source has delivered nothing. A change waits until every renderer has answered it or a later
// one. Then each of its objects waits in the queue of the renderer until VPP has answered. So each
// answer about a service that changes all the time moves the clock. Services in quarantine and
// objects that VPP refuses do not count. They may fail on every node alike, and would make all
// nodes unhealthy.
func (a *Agent) queuedSince() time.Time {
	seen := a.node.Load()
	if seen == nil {
		return time.Time{}
	}
	oldest := a.pending.Oldest(a.inQuarantine)
	if behind := a.readiness.Load().Behind("watch", "nodes"); !behind.IsZero() {
		if behind.Before(seen.first) {
			behind = seen.first
		}
		if oldest.IsZero() || behind.Before(oldest) {
			oldest = behind
		}
	}
	return oldest
}

// inQuarantine reports whether the actor of a service is in quarantine.
func (a *Agent) inQuarantine(key string) bool {
	actor, ok := a.system.Actor(address.Service(key))
	return ok && actor.State == runtime.StateQuarantined
}

// serveHealth starts the health server for load balancers and the kubelet. While its address is in
// use, the server reports it and retries.
func (a *Agent) serveHealth() error {
	address := a.cfg.API.HealthzBindAddress
	if address == "" {
		return nil
	}
	a.nodePort = healthcheck.NewNodeServer(address, a.keepsUp, healthcheck.Config{
		Log: a.log.With("part", "healthcheck"), OnLimit: a.refusals.tooManyConnections(listenerHealthz),
		OnProblem: func(p healthcheck.Problem) { a.events.Record(events.NodeHealth(a.cfg.NodeName, address, p.Err)) },
	})
	a.own("node health server", a.nodePort.Run)
	return nil
}

// unserved returns why a health-check node port of a service is not served, for example because
// another process has it; "" = it is served. The addresses of a simulated node are not of this
// machine, so that they are no problem.
func (a *Agent) unserved(service string) string {
	for _, p := range a.unservedPorts() {
		if p.Service == service {
			return fmt.Sprintf("healthCheckNodePort %s: %v", p.Address, p.Err)
		}
	}
	return ""
}

func (a *Agent) unservedPorts() []healthcheck.Problem {
	return slices.DeleteFunc(slices.Clone(a.health.Status().Problems), func(p healthcheck.Problem) bool {
		return a.cni != nil && errors.Is(p.Err, syscall.EADDRNOTAVAIL)
	})
}

// healthCheckParts returns the line of /readyz?verbose about health-check node ports. A port that
// is not served does not make the node unready: load balancers send it no packets of the service.
func (a *Agent) healthCheckParts() []api.Part {
	problems := a.unservedPorts()
	if len(problems) == 0 {
		return nil
	}
	first := problems[0]
	return []api.Part{{Name: "health-checks", OK: true, Reason: fmt.Sprintf("%d not served, for example of %s: %v", len(problems), first.Service, first.Err)}}
}

// serveMetrics starts the server of metrics for the network. While its address is in use, the
// server reports it and retries.
func (a *Agent) serveMetrics() error {
	address := a.cfg.API.MetricsBindAddress
	if address == "" {
		return nil
	}
	only := http.NewServeMux()
	only.Handle("GET /metrics", a.Metrics())
	a.scraped = healthcheck.NewNodeServer(address, only, healthcheck.Config{
		Log: a.log.With("part", "metrics"), OnLimit: a.refusals.tooManyConnections(listenerMetrics),
	})
	a.own("metrics server", a.scraped.Run)
	return nil
}
