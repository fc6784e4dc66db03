package agent

import (
	"log/slog"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
)

// Names of further listeners (server.Refusal.Listener).
const (
	listenerHealthz    = "healthz"
	listenerHealthPort = "health-check-node-port"
	listenerMetrics    = "metrics"
)

// refusalInterval is the shortest time between two log lines about refusals of one kind, because
// clients decide how many there are.
const refusalInterval = time.Minute

// refusals counts refused requests and connections and logs some of them.
type refusals struct {
	metrics *metrics.Metrics
	log     *slog.Logger

	mu    sync.Mutex
	kinds map[[2]string]*refusalKind // by listener and reason
}

// refusalKind are the refusals of one listener and reason.
type refusalKind struct {
	logged   time.Time
	unlogged uint64 // number of refusals without a log line since then
}

func newRefusals(m *metrics.Metrics, log *slog.Logger) *refusals {
	return &refusals{metrics: m, log: log, kinds: map[[2]string]*refusalKind{}}
}

// note counts a refusal. It is safe for concurrent use.
func (r *refusals) note(refusal server.Refusal) {
	r.metrics.Refused(refusal.Listener, refusal.Why)
	if unlogged, due := r.due(refusal, time.Now()); due {
		r.log.Warn("HTTP client refused", "listener", refusal.Listener, "why", refusal.Why, "client", refusal.Client, "err", refusal.Text,
			"unlogged", unlogged)
	}
}

// due reports whether the log gets a line for a refusal, and the number of earlier refusals without
// a line.
func (r *refusals) due(refusal server.Refusal, now time.Time) (unlogged uint64, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{refusal.Listener, refusal.Why}
	kind := r.kinds[key]
	if kind == nil {
		kind = &refusalKind{}
		r.kinds[key] = kind
	}
	if !kind.logged.IsZero() && now.Sub(kind.logged) < refusalInterval {
		kind.unlogged++
		return 0, false
	}
	unlogged = kind.unlogged
	kind.logged, kind.unlogged = now, 0
	return unlogged, true
}

// tooManyConnections returns a function for a health-check server, which calls it when it closes a
// connection above its limit.
func (r *refusals) tooManyConnections(listener string) func() {
	return func() {
		r.note(server.Refusal{
			Listener: listener, Why: server.RefusedConnections, Text: "too many connections at the same time: the longest idle one is closed",
		})
	}
}
