package kubetest

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// File is the whole file. It is decoded strictly: an unknown field fails the test.
type File struct {
	SchemaVersion int    `json:"schemaVersion"`
	Kubernetes    string `json:"kubernetes"`
	Documentation string `json:"documentation"`
	Cases         []Case `json:"cases"`
}

// Case is one situation with its follow-ups.
type Case struct {
	Name        string `json:"name"`
	Source      string `json:"source"`
	Description string `json:"description"`
	Level       string `json:"level"`
	Node        Node   `json:"node"`
	Config      Config `json:"config"`
	Objects
	Preexisting []Row   `json:"preexisting"`
	Synced      *Synced `json:"synced"`
	Steps       []Step  `json:"steps"`
	Outcome
}

// Step is a follow-up on the accumulated state.
type Step struct {
	Name         string  `json:"name"`
	Apply        Objects `json:"apply"`
	Delete       Keys    `json:"delete"`
	Node         *Node   `json:"node"`
	ProxyHealthy *bool   `json:"proxyHealthy"`
	Outcome
}

// Outcome holds the expectations after the objects of the case, or after a step.
type Outcome struct {
	Expect                 []Row         `json:"expect"`
	Packets                []Packet      `json:"packets"`
	HealthChecks           []HealthCheck `json:"healthChecks"`
	Metrics                *Metrics      `json:"metrics"`
	UDPFlows               []Flow        `json:"udpFlows"`
	UDPFlowCleanupRequired *bool         `json:"udpFlowCleanupRequired"`
	Touched                *[]string     `json:"touched"`
}

// Node is this node.
type Node struct {
	Name      string            `json:"name"`
	Zone      string            `json:"zone"`
	Labels    map[string]string `json:"labels"`
	Addresses []string          `json:"addresses"`
}

// Config is the configuration of the agent.
type Config struct {
	NodePortAddresses []string `json:"nodePortAddresses"`
	ClusterCIDRs      []string `json:"clusterCIDRs"`
	ServiceCIDRs      []string `json:"serviceCIDRs"`
	MasqueradeAll     bool     `json:"masqueradeAll"`
}

// Objects are created or replaced. Load adds the Node object of a case or step.
type Objects struct {
	Services       []*corev1.Service            `json:"services"`
	EndpointSlices []*discoveryv1.EndpointSlice `json:"endpointSlices"`
	Nodes          []*corev1.Node               `json:"-"`
	Pods           []*corev1.Pod                `json:"-"`
}

// Keys are the "namespace/name" of deleted objects.
type Keys struct {
	Services       []string `json:"services"`
	EndpointSlices []string `json:"endpointSlices"`
}

// Synced are the kinds that the API server has listed completely; nil = both.
type Synced struct {
	Services       bool `json:"services"`
	EndpointSlices bool `json:"endpointSlices"`
}

// Row is the treatment of one client class at one frontend.
type Row struct {
	Frontend        string    `json:"frontend"`
	Scope           string    `json:"scope"`
	Kind            string    `json:"kind"`
	From            string    `json:"from"`
	Action          string    `json:"action"`
	Endpoints       []string  `json:"endpoints"`
	AffinitySeconds uint32    `json:"affinitySeconds"`
	Reject          bool      `json:"reject"`
	MasqueradeFrom  *[]string `json:"masqueradeFrom"`
	AllowSources    *[]string `json:"allowSources"`
}

// Packet is an arriving packet with its expected treatment.
type Packet struct {
	Name       string   `json:"name"`
	Src        string   `json:"src"`
	Dst        string   `json:"dst"`
	Action     string   `json:"action"`
	Endpoints  []string `json:"endpoints"`
	Masquerade bool     `json:"masquerade"`
	Level      string   `json:"level"`
}

// HealthCheck is the answer at the health-check node port of a service.
type HealthCheck struct {
	Service         string            `json:"service"`
	Listen          *bool             `json:"listen"`
	Port            uint32            `json:"port"`
	Status          int               `json:"status"`
	LocalEndpoints  uint32            `json:"localEndpoints"`
	ListenAddresses []string          `json:"listenAddresses"`
	Headers         map[string]string `json:"headers"`
	Body            json.RawMessage   `json:"body"`
}

// Metrics are kube-proxy's sync_proxy_rules_no_local_endpoints_total.
type Metrics struct {
	NoLocalEndpoints struct {
		Internal uint32 `json:"internal"`
		External uint32 `json:"external"`
	} `json:"no_local_endpoints"`
}

// Flow is an existing UDP flow, and whether it must end.
type Flow struct {
	Dst      string `json:"dst"`
	Endpoint string `json:"endpoint"`
	Deleted  bool   `json:"deleted"`
}

// Object returns the Node object of the node.
func (n *Node) Object() *corev1.Node {
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	for _, a := range n.Addresses {
		out.Status.Addresses = append(out.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return out
}
