package healthcheck

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// NodeTimeout is the time for which a change may wait before the node counts as unhealthy:
// twice the sync period of kube-proxy.
const NodeTimeout = time.Minute

// DefaultLostTimeout is the time for which the dataplane may be lost before load balancers are
// told. A restart of VPP takes less, and they are told within 5 s.
const DefaultLostTimeout = 4 * time.Second

// SyncState is the progress of the renderer of one family.
type SyncState struct {
	// QueuedSince is the arrival time of the oldest change that is not in VPP yet; zero = none.
	QueuedSince time.Time
	// LastUpdated is the time of the last complete update of VPP; zero = never.
	LastUpdated time.Time
}

// NodeState is the input from which Evaluate derives the health of a node.
type NodeState struct {
	// Families are the families that this node serves; IPV4 and IPV6 are the only keys.
	Families map[messages.IPFamily]SyncState
	// LostSince is the time since which the dataplane forwards nothing; zero = it forwards.
	LostSince time.Time
	// Known is true once the Node object has been seen.
	Known bool
	// Leaving is true when the Node is being deleted, or when the cluster autoscaler is about to
	// delete it (messages.Node).
	Leaving bool
}

// FamilyHealth is the health of one family (ProxierHealth of kube-proxy).
type FamilyHealth struct {
	// LastUpdated is the time of the last complete update of the family.
	LastUpdated time.Time `json:"lastUpdated"`
	// Healthy is false while a change waits longer than the timeout.
	Healthy bool `json:"healthy"`
}

// ProxyHealth is the body of the answers, with the same fields as in kube-proxy 1.36.
type ProxyHealth struct {
	// LastUpdated is the time of the latest update of any family, or the current time in a good
	// answer.
	LastUpdated time.Time `json:"lastUpdated"`
	// CurrentTime is the time of the request.
	CurrentTime time.Time `json:"currentTime"`
	// NodeEligible is true when the node will stay. It is nil in answers of /livez, for which it
	// does not matter.
	NodeEligible *bool `json:"nodeEligible,omitempty"`
	// Healthy is true when every family is healthy.
	Healthy bool `json:"healthy"`
	// Status holds the families by "IPv4" and "IPv6".
	Status map[string]FamilyHealth `json:"status,omitempty"`
}

// familyNames are the names of the families in core/v1.
var familyNames = map[messages.IPFamily]string{messages.IPFamily_IPV4: "IPv4", messages.IPFamily_IPV6: "IPv6"}

// Evaluate returns the health of a node. A family is healthy unless a change waits for NodeTimeout
// or longer. For kube-proxy a family is healthy until its first update. Here a family whose first
// update takes too long is unhealthy, because such a node has never served anything.
func Evaluate(state NodeState, now time.Time) ProxyHealth {
	health := ProxyHealth{CurrentTime: now, Healthy: true, Status: map[string]FamilyHealth{}}
	for family, sync := range state.Families {
		healthy := sync.QueuedSince.IsZero() || now.Sub(sync.QueuedSince) < NodeTimeout
		health.Healthy = health.Healthy && healthy
		health.Status[familyNames[family]] = FamilyHealth{LastUpdated: sync.LastUpdated, Healthy: healthy}
		if sync.LastUpdated.After(health.LastUpdated) {
			health.LastUpdated = sync.LastUpdated
		}
	}
	return health
}

// Eligible reports whether load balancers should send new connections to the node.
func (s NodeState) Eligible() bool { return s.Known && !s.Leaving }

// NodeHealthConfig is the configuration of NodeHealth. The zero value of a field means its default,
// except for State.
type NodeHealthConfig struct {
	// State returns the current state. It is called for every request, from any goroutine, and must
	// not block. Required.
	State func() NodeState
	// LostTimeout is the time for which the dataplane may be lost. Default DefaultLostTimeout.
	LostTimeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Answered is called for every answer: "healthz" or "livez" and the HTTP status
	// (kubeproxy_proxy_healthz_total, .._livez_total). Default: not counted.
	Answered func(endpoint string, status int)
}

// NodeHealth answers /healthz and /livez as kube-proxy does on its port 10256: 200 or 503 for any
// method. Other paths get 404.
//
// Load balancers ask /healthz, which is 200 if the node is healthy, forwards and stays. The kubelet
// asks /livez, which ignores a lost dataplane until its change has waited for NodeTimeout, and
// whether the node leaves, because that is no reason for a restart.
type NodeHealth struct {
	cfg NodeHealthConfig
	mux *http.ServeMux
}

// NewNodeHealth returns a handler that reads the state for every request.
func NewNodeHealth(cfg NodeHealthConfig) *NodeHealth {
	cfg.LostTimeout = cmp.Or(cfg.LostTimeout, DefaultLostTimeout)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Answered == nil {
		cfg.Answered = func(string, int) {}
	}
	h := &NodeHealth{cfg: cfg, mux: http.NewServeMux()}
	h.mux.HandleFunc("/healthz", h.healthz)
	h.mux.HandleFunc("/livez", h.livez)
	return h
}

// ServeHTTP satisfies http.Handler.
func (h *NodeHealth) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Healthy reports whether the node keeps up with the cluster and forwards, even if it leaves. It is
// serviceProxyHealthy in the answers of health-check node ports (Config.Healthy).
func (h *NodeHealth) Healthy() bool { return h.forwarding(h.cfg.State()).Healthy }

// forwarding is Evaluate for load balancers, whose packets a lost dataplane does not forward.
func (h *NodeHealth) forwarding(state NodeState) ProxyHealth {
	health := Evaluate(state, h.cfg.Now())
	if state.LostSince.IsZero() || health.CurrentTime.Sub(state.LostSince) < h.cfg.LostTimeout {
		return health
	}
	health.Healthy = false
	for name, family := range health.Status {
		family.Healthy = false
		health.Status[name] = family
	}
	return health
}

// healthz answers load balancers.
func (h *NodeHealth) healthz(w http.ResponseWriter, _ *http.Request) {
	state := h.cfg.State()
	health, eligible := h.forwarding(state), state.Eligible()
	health.NodeEligible = &eligible
	h.answer(w, "healthz", health, health.Healthy && eligible)
}

// livez answers the kubelet.
func (h *NodeHealth) livez(w http.ResponseWriter, _ *http.Request) {
	health := Evaluate(h.cfg.State(), h.cfg.Now())
	h.answer(w, "livez", health, health.Healthy)
}

// answer writes the verdict. A good answer has the current time as lastUpdated, because clients
// take an old time as a sign of a dead proxy.
func (h *NodeHealth) answer(w http.ResponseWriter, endpoint string, health ProxyHealth, good bool) {
	status := http.StatusServiceUnavailable
	if good {
		status = http.StatusOK
		health.LastUpdated = health.CurrentTime
	}
	body, err := json.Marshal(health)
	if err != nil { // a year beyond 9999 has no JSON form
		status, body = http.StatusServiceUnavailable, []byte("{}")
	}
	h.cfg.Answered(endpoint, status)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
