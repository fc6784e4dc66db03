package healthcheck

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

// DefaultNodeTimeout is how long a change may wait before the node counts as unhealthy: twice the
// sync period of kube-proxy.
const DefaultNodeTimeout = time.Minute

// SyncState is the progress of the renderer of one family.
type SyncState struct {
	// QueuedSince is when the oldest change arrived that has not reached VPP yet; zero = none.
	QueuedSince time.Time
	// LastUpdated is when VPP was last brought up to date; zero = never.
	LastUpdated time.Time
}

// NodeState is what the health of a node depends on.
type NodeState struct {
	// Families are those that this node serves; IPV4 and IPV6 are the only keys.
	Families map[messages.IPFamily]SyncState
	// Known is false as long as the Node object has not been seen.
	Known bool
	// Leaving is true when the Node is being deleted, or is about to be by the cluster autoscaler
	// (messages.Node).
	Leaving bool
}

// FamilyHealth is the health of one family (ProxierHealth of kube-proxy).
type FamilyHealth struct {
	// LastUpdated is when the family was last brought up to date.
	LastUpdated time.Time `json:"lastUpdated"`
	// Healthy is false while a change waits for too long.
	Healthy bool `json:"healthy"`
}

// ProxyHealth is the body of the answers, field by field that of kube-proxy 1.36.
type ProxyHealth struct {
	// LastUpdated is the time of the latest update of any family, or the current time in a good
	// answer.
	LastUpdated time.Time `json:"lastUpdated"`
	// CurrentTime is the time of the request.
	CurrentTime time.Time `json:"currentTime"`
	// NodeEligible is true when the node will stay; nil in answers of /livez, where it does not
	// matter.
	NodeEligible *bool `json:"nodeEligible,omitempty"`
	// Healthy is true when every family is.
	Healthy bool `json:"healthy"`
	// Status holds the families by "IPv4" and "IPv6".
	Status map[string]FamilyHealth `json:"status,omitempty"`
}

// familyNames are the names of the families in core/v1.
var familyNames = map[messages.IPFamily]string{messages.IPFamily_IPV4: "IPv4", messages.IPFamily_IPV6: "IPv6"}

// Evaluate returns the health of a node. A family is healthy unless a change waits for the timeout
// or longer. For kube-proxy a family is healthy until its first update; here a first update that
// takes too long is a problem, too, because such a node has never served anything.
func Evaluate(state NodeState, now time.Time, timeout time.Duration) ProxyHealth {
	health := ProxyHealth{CurrentTime: now, Healthy: true, Status: map[string]FamilyHealth{}}
	for family, sync := range state.Families {
		healthy := sync.QueuedSince.IsZero() || now.Sub(sync.QueuedSince) < timeout
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

// NodeHealthConfig is the configuration of NodeHealth. The zero value of a field but State means
// its default.
type NodeHealthConfig struct {
	// State returns the present state; it is called for every request, from any goroutine, and must
	// not block. Required.
	State func() NodeState
	// Timeout is how long a change may wait. Default DefaultNodeTimeout.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Answered is called for every answer: "healthz" or "livez" and the HTTP status
	// (kubeproxy_proxy_healthz_total, .._livez_total). Default: not counted.
	Answered func(endpoint string, status int)
}

// NodeHealth answers /healthz and /livez as kube-proxy does on its port 10256: any method, 200 or
// 503, and everything else 404.
//
// Load balancers ask /healthz: the node is healthy and stays. The kubelet asks /livez: a node that
// leaves is no reason for a restart.
type NodeHealth struct {
	cfg NodeHealthConfig
	mux *http.ServeMux
}

// NewNodeHealth returns a handler that looks at the state whenever it is asked.
func NewNodeHealth(cfg NodeHealthConfig) *NodeHealth {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultNodeTimeout
	}
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

var _ http.Handler = (*NodeHealth)(nil)

// ServeHTTP satisfies http.Handler.
func (h *NodeHealth) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Healthy reports whether the node keeps up, whether it stays or not: serviceProxyHealthy in the
// answers of health-check node ports (Config.Healthy).
func (h *NodeHealth) Healthy() bool {
	return Evaluate(h.cfg.State(), h.cfg.Now(), h.cfg.Timeout).Healthy
}

// healthz answers load balancers.
func (h *NodeHealth) healthz(w http.ResponseWriter, _ *http.Request) {
	state := h.cfg.State()
	health, eligible := Evaluate(state, h.cfg.Now(), h.cfg.Timeout), state.Eligible()
	health.NodeEligible = &eligible
	h.answer(w, "healthz", health, health.Healthy && eligible)
}

// livez answers the kubelet.
func (h *NodeHealth) livez(w http.ResponseWriter, _ *http.Request) {
	health := Evaluate(h.cfg.State(), h.cfg.Now(), h.cfg.Timeout)
	h.answer(w, "livez", health, health.Healthy)
}

// answer writes the verdict. A good answer carries the current time as lastUpdated: clients read an
// old time as a dead proxy.
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
