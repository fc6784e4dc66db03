package service

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// healthCheck returns the health-check port of one family; nil if the family has none. Only a
// LoadBalancer service with the Local policy has one. The load balancer asks this port whether this
// node has endpoints of its own. A dual-stack service has one for each family, both with the same
// port number.
func (r *resolver) healthCheck(family messages.IPFamily, g gathered) *messages.HealthCheck {
	port := r.service.GetHealthCheckNodePort()
	if !validPort(port) || r.service.GetType() != messages.ServiceType_LOAD_BALANCER ||
		r.service.GetExternalPolicy() != messages.TrafficPolicy_POLICY_LOCAL {
		return nil
	}
	nodes := r.cfg.NodePortAddresses.choose(r.node, family)
	if len(nodes) == 0 {
		return nil
	}
	check := &messages.HealthCheck{Port: port, LocalEndpoints: r.localReady(g), ListenAddresses: make([]string, len(nodes))}
	for i, a := range nodes {
		check.ListenAddresses[i] = AddressPortText(a.text, port)
	}
	return check
}

// localReady counts the distinct addresses of ready endpoints on this node, over all ports of the
// slices, even ports that the Service does not have. A terminating endpoint does not count,
// although it gets traffic while no other is ready: the load balancer must turn away from this
// node.
func (r *resolver) localReady(g gathered) uint32 {
	ready := map[string]struct{}{}
	for port := range g {
		for _, e := range r.join(g, port) {
			if e.ready() && r.at.isLocal(e) {
				ready[e.address] = struct{}{}
			}
		}
	}
	return uint32(len(ready)) //nolint:gosec // Bounded by the number of endpoints, far below 2^32.
}

// HealthResponse is the answer of a health-check node port to any request, ready to be written.
type HealthResponse struct {
	// Status is 200 or 503.
	Status int
	// Header has the content headers and X-Load-Balancing-Endpoint-Weight, the number of local
	// endpoints. It belongs to the caller.
	Header http.Header
	// Body is one JSON object, byte by byte what kube-proxy writes: indented by tabs, without a
	// newline at the end.
	Body []byte
}

// healthBody is the JSON that kube-proxy answers with.
type healthBody struct {
	Service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	LocalEndpoints      uint32 `json:"localEndpoints"`
	ServiceProxyHealthy bool   `json:"serviceProxyHealthy"`
}

// HealthAnswer returns what the health-check node port of a service answers: 200 when this node has
// local endpoints and the proxy is healthy, otherwise 503. key is "namespace/name"; the count stays
// in the answer of an unhealthy proxy. A nil check counts as no endpoints.
func HealthAnswer(key string, check *messages.HealthCheck, proxyHealthy bool) HealthResponse {
	status := http.StatusServiceUnavailable
	if check.GetLocalEndpoints() > 0 && proxyHealthy {
		status = http.StatusOK
	}
	body := healthBody{LocalEndpoints: check.GetLocalEndpoints(), ServiceProxyHealthy: proxyHealthy}
	body.Service.Namespace, body.Service.Name, _ = strings.Cut(key, "/")
	text, err := json.MarshalIndent(body, "", "\t")
	if err != nil {
		// A struct of strings, a number and a bool always has a JSON form.
		text = []byte("{}")
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatUint(uint64(check.GetLocalEndpoints()), 10))
	return HealthResponse{Status: status, Header: header, Body: text}
}
