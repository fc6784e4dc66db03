package config

// APIVersion and Kind are what the head of a configuration file must say.
const (
	APIVersion = "troupe.dev/v1alpha1"
	Kind       = "AgentConfiguration"
)

// Agent is the configuration of the agent of one node. It holds no secrets, only the paths of files that do, so the same document may lie
// in a ConfigMap for all nodes.
type Agent struct {
	// Always troupe.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Always AgentConfiguration.
	Kind string `json:"kind"`
	// Name of this node in Kubernetes, as in metadata.name of its Node object. The agent does not start without it; a file that many nodes
	// share leaves it empty and each node passes --node-name.
	NodeName string `json:"nodeName" flag:"node-name"`
	// Which dataplane renders IPv4 and IPv6: nat44 (IPv4 only), cnat (both) or dual (nat44 for IPv4, cnat for IPv6). This version has nat44
	// only and refuses the others.
	Renderer string `json:"renderer" flag:"renderer" enum:"nat44,cnat,dual"`
	// Take our rows, access lists, routes, interface roles and the hairpin address out of VPP when the agent is told to stop. By default VPP goes
	// on forwarding, and the next start finds everything in place.
	CleanupOnExit bool `json:"cleanupOnExit" flag:"cleanup-on-exit"`
	// Directory for what must outlive this process: the local mirror with the node ID (mirror/), external configuration (external/), interfaces
	// that were told to be of pods (pods.json), and the data of an embedded etcd. Empty: none of it is kept, but for an embedded etcd in
	// etcd.dataDir.
	DataDir string `json:"dataDir" flag:"data-dir"`
	// Where the desired state comes from.
	Kubernetes Kubernetes `json:"kubernetes"`
	// What is served, as far as the cluster does not say it itself.
	Services Services `json:"services"`
	// The connection to VPP.
	VPP VPP `json:"vpp"`
	// Settings of the nat44 renderer.
	NAT44 NAT44 `json:"nat44"`
	// Configuration of NAT from outside of Kubernetes: see docs/external.md.
	External External `json:"external"`
	// What pods send out of the cluster: see docs/external.md.
	SNAT SNAT `json:"snat"`
	// Where the nodes agree on node IDs and VPP addresses.
	Etcd Etcd `json:"etcd"`
	// The local mirror: what the agent starts with when neither the API server nor etcd answers. It needs dataDir.
	Mirror Mirror `json:"mirror"`
	// Intervals of checks and repairs: see docs/architecture.md.
	Healing Healing `json:"healing"`
	// The HTTP server.
	API API `json:"api"`
	// The log.
	Log Log `json:"log"`
}

// Kubernetes says where Services, EndpointSlices, Nodes and Pods are read.
type Kubernetes struct {
	// "kubernetes" reads the API server; "files:DIR" reads every *.yaml and *.json in DIR and watches it.
	Source string `json:"source" flag:"kube-source"`
	// Path of a kubeconfig. Empty: the service account of the pod. The address in it must not be a ClusterIP: this agent is what makes
	// ClusterIPs work.
	Kubeconfig string `json:"kubeconfig" flag:"kubeconfig"`
	// Average number of requests per second to the API server; watches do not count.
	QPS int `json:"qps" min:"1" max:"1000"`
	// How many requests may exceed qps at once.
	Burst int `json:"burst" min:"1" max:"10000"`
}

// Services adds to the Kubernetes objects what kube-proxy takes from its configuration as well.
type Services struct {
	// Networks of all pods of the cluster. A client whose address is inside is taken for a pod; without them ClusterIP traffic is never
	// masqueraded and no pod gets the short cut past externalTrafficPolicy Local.
	ClusterCIDRs []string `json:"clusterCIDRs" flag:"cluster-cidr" check:"cidr"`
	// Networks of the ClusterIPs. Packets to an address of them that belongs to no service are refused instead of routed away.
	ServiceCIDRs []string `json:"serviceCIDRs" flag:"service-cidr" check:"cidr"`
	// Addresses of this node on which node ports are served: "primary" alone (the first address of the Node object, per family), or
	// networks, or "all" alone; an empty list means all.
	NodePortAddresses []string `json:"nodePortAddresses" flag:"node-port-addresses" check:"nodeport"`
	// Masquerade every client of a ClusterIP, pods included.
	MasqueradeAll bool `json:"masqueradeAll" flag:"masquerade-all"`
}

// VPP says how the dataplane is reached.
type VPP struct {
	// "socket" talks to VPP through its sockets; "simulated" starts a simulated VPP inside the agent, for trying and testing.
	Mode string `json:"mode" flag:"vpp" enum:"socket,simulated"`
	// Binary API socket of VPP (socksvr in its startup.conf).
	APISocket string `json:"apiSocket" flag:"vpp-api-socket"`
	// Statistics socket of VPP (statseg in its startup.conf). Empty, or nobody there: the number of NAT sessions is asked for by the API, which stops
	// the workers for a moment.
	StatsSocket string `json:"statsSocket" flag:"vpp-stats-socket"`
	// How many requests may be under way at once. 1 makes a cold start about twenty times slower.
	RequestWindow int `json:"requestWindow" min:"1" max:"4096"`
	// How long VPP may take for an answer before the connection counts as lost and all requests under way as unknown.
	ReplyTimeout Duration `json:"replyTimeout" min:"100ms" max:"5m"`
}

// NAT44 are the settings of VPP's NAT44-ED plugin, which the agent owns on its node.
type NAT44 struct {
	// IPv4 address that replaces the source of a packet whose client is its own backend (hairpin), and of clients that must be masqueraded.
	// It must not belong to anything else. Empty: the last address of the node's pod CIDR.
	LoopbackIP string `json:"loopbackIP" flag:"nat-loopback-ip" check:"ipv4"`
	// Number of sessions of each worker that the plugin is enabled with; where it is enabled with fewer, its limit is raised. 0 leaves VPP's value.
	SessionLimit int `json:"sessionLimit" min:"0" max:"67108864"`
	// Highest value to which the limit of sessions is raised when living sessions need it, before connections are refused; it is never lowered.
	// A session takes about 350 bytes of VPP's main heap. 0, or less than sessionLimit: it is never raised above sessionLimit.
	SessionLimitMax int `json:"sessionLimitMax" min:"0" max:"67108864"`
	// How often the agent looks how full the table of sessions is; expired sessions are freed from 80 percent on.
	SessionCheckInterval Duration `json:"sessionCheckInterval" min:"1s" max:"10m"`
	// Idle time after which VPP may reuse a session, by protocol.
	Timeouts Timeouts `json:"timeouts"`
}

// Timeouts are the idle times of NAT44 sessions. VPP counts in seconds.
type Timeouts struct {
	// Of UDP sessions.
	UDP Duration `json:"udp" min:"1s" max:"24h"`
	// Of established TCP connections.
	TCPEstablished Duration `json:"tcpEstablished" min:"1s" max:"168h"`
	// Of TCP connections that are opening or closing.
	TCPTransitory Duration `json:"tcpTransitory" min:"1s" max:"24h"`
	// Of ICMP sessions.
	ICMP Duration `json:"icmp" min:"1s" max:"24h"`
}

// External says where external configuration is, besides keys in etcd and the control socket.
type External struct {
	// Path of a document of kind ExternalConfiguration, YAML or JSON. It is watched; it need not be there. Empty: none.
	File string `json:"file" flag:"external-file"`
}

// SNAT is dynamic source NAT for what pods send out of the cluster. Where packets between pods of different nodes leave through the same interface
// without an overlay it is refused, with a warning.
type SNAT struct {
	// Replace the addresses of pods by one of the node where their packets leave the cluster.
	Enabled bool `json:"enabled" flag:"snat"`
	// Name of the interface in VPP through which pods leave. Empty: the uplink, which has the default route.
	Interface string `json:"interface"`
	// IPv4 address of the interface that pods leave with. Empty: its first one. Pods cannot reach node ports at its other addresses.
	Address string `json:"address" check:"ipv4"`
	// Ports at which the nodes tunnel to each other; NAT leaves them alone at the addresses of the interface.
	OverlayPorts []string `json:"overlayPorts" check:"port"`
}

// Etcd says where the nodes of the cluster agree.
type Etcd struct {
	// "external" uses the endpoints; "embedded" runs an etcd inside this agent, for a cluster of one node or for trying; "none" leaves this
	// node alone, without a node ID and unknown to its peers.
	Mode string `json:"mode" flag:"etcd" enum:"external,embedded,none"`
	// URLs of the etcd members, for example https://10.0.0.1:2379.
	Endpoints []string `json:"endpoints" flag:"etcd-endpoints" check:"url"`
	// Path of the certificate authority that signed the members' certificates (PEM). Empty: the system's.
	CA string `json:"ca" flag:"etcd-ca"`
	// Path of this agent's certificate (PEM). Needs key.
	Cert string `json:"cert" flag:"etcd-cert"`
	// Path of the key of cert (PEM).
	Key string `json:"key" flag:"etcd-key"`
	// Directory for the data of an embedded etcd where dataDir is empty.
	DataDir string `json:"dataDir"`
	// Prefix of all keys. Clusters that share one etcd need different ones.
	Prefix string `json:"prefix"`
	// How long after a node left Kubernetes its ID stays taken.
	GracePeriod Duration `json:"gracePeriod" min:"0s" max:"720h"`
}

// Mirror says when the local mirror is used, and when it forgets.
type Mirror struct {
	// How long the source may take for its first complete list before the mirror stands in for it. A source that says that it cannot read
	// anything is not waited for.
	Grace Duration `json:"grace" min:"100ms" max:"10m"`
	// How long a healthy source must have no service at all before the mirror forgets those it has: a source that lost its data looks the
	// same.
	ConfirmEmpty Duration `json:"confirmEmpty" min:"1s" max:"168h"`
}

// Healing are the intervals at which the agent looks after itself.
type Healing struct {
	// At the latest after so long VPP is compared with what it should hold. It is sooner when reading VPP is quick: a thousandth of the time is spent on
	// it, which is about 1 s between two comparisons with a hundred rows and 30 s with ten thousand.
	DriftCheckInterval Duration `json:"driftCheckInterval" min:"1s" max:"24h"`
	// At the soonest after so long. With the value of driftCheckInterval VPP is compared at fixed intervals.
	DriftCheckLeast Duration `json:"driftCheckLeast" min:"100ms" max:"24h"`
	// Longest time between two looks at VPP's interfaces; events make it look earlier.
	RediscoverInterval Duration `json:"rediscoverInterval" min:"100ms" max:"1h"`
	// First delay after something that failed; it doubles up to 30 s.
	Backoff Duration `json:"backoff" min:"10ms" max:"30s"`
	// How long a part may be wrong before more is done about it, and then how long each remedy has to help: VPP is read and compared, everything
	// is worked out anew, actors are restarted, the process ends.
	Patience Duration `json:"patience" min:"5s" max:"1h"`
}

// API says where the agent answers.
type API struct {
	// Address of the read-only HTTP server: health, metrics, state. It has no authentication: keep it on loopback unless the network is
	// trusted. Empty: none.
	HTTPAddress string `json:"httpAddress" flag:"http-address" check:"hostport"`
	// Address on which load balancers and the kubelet ask for the health of this node, in the words of kube-proxy: /healthz and /livez. If it is
	// taken, the agent says so and tries again until it is free. Empty: none.
	HealthzBindAddress string `json:"healthzBindAddress" flag:"healthz-bind-address" check:"hostport"`
	// Path of the unix socket (mode 0600) that also takes calls which change something. Empty: none.
	ControlSocket string `json:"controlSocket" flag:"control-socket"`
	// Allow faults of single actors, and drills, through the control socket: see docs/chaos.md. Without it nothing of that can happen.
	EnableChaos bool `json:"enableChaos" flag:"enable-chaos"`
}

// Log says how the agent writes its log to standard error.
type Log struct {
	// json or text.
	Format string `json:"format" flag:"log-format" enum:"json,text"`
	// Least severity that is written: debug, info, warn or error.
	Level string `json:"level" flag:"log-level" enum:"debug,info,warn,error"`
}
