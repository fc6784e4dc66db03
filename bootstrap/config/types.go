package config

// APIVersion and Kind are the values that a configuration file must have in these fields.
const (
	APIVersion = "troupe.dev/v1alpha1"
	Kind       = "AgentConfiguration"
)

// Agent is the configuration of the agent of one node. It holds no secrets, only paths of files
// with secrets, so that one ConfigMap may serve all nodes.
type Agent struct {
	// Always troupe.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Always AgentConfiguration.
	Kind string `json:"kind"`
	// Name of this node in Kubernetes, as in metadata.name of its Node object. The agent does not
	// start without it; where nodes share a file, each node passes --node-name.
	NodeName string `json:"nodeName" flag:"node-name"`
	// Renderer of services in VPP: dual (NAT44 for IPv4, CNAT for IPv6), nat44 (IPv4 only), cnat
	// (CNAT for both; without source ranges, external configuration and dynamic SNAT, which need
	// NAT44) or auto. auto is dual, or cnat where NAT44 cannot serve a pod, because VPP itself has
	// the pod's address in the pod's table. The agent chooses when it first connects to VPP, and
	// keeps the choice until it restarts.
	Renderer string `json:"renderer" flag:"renderer" enum:"auto,nat44,cnat,dual"`
	// Remove the agent's rows, access lists, routes, and the interface roles and addresses that it
	// has made, from VPP when the agent stops, and its routes from the host. By default VPP keeps
	// forwarding, and the next start finds everything in place.
	CleanupOnExit bool `json:"cleanupOnExit" flag:"cleanup-on-exit"`
	// Directory for state that outlives the process: the local mirror with the node ID (mirror/),
	// external configuration (external/), interfaces assigned to pods (pods.json), what the agent
	// has made in VPP (vpp.json), and the data of an embedded etcd. Empty: the agent keeps no such
	// state, and an embedded etcd uses etcd.dataDir.
	DataDir string `json:"dataDir" flag:"data-dir"`
	// Source of the desired state.
	Kubernetes Kubernetes `json:"kubernetes"`
	// Settings of service handling that Kubernetes objects do not contain.
	Services Services `json:"services"`
	// The connection to VPP.
	VPP VPP `json:"vpp"`
	// Settings of the nat44 renderer.
	NAT44 NAT44 `json:"nat44"`
	// External configuration of NAT: see docs/external.md.
	External External `json:"external"`
	// Source NAT for traffic of pods that leaves the cluster: see docs/external.md.
	SNAT SNAT `json:"snat"`
	// Routes of the host. They lead the packets of its processes to VPP.
	HostRoute HostRoute `json:"hostRoute"`
	// Load-balancer addresses that VPP answers for: see docs/addresses.md.
	Addresses Addresses `json:"addresses"`
	// Store of node IDs and VPP addresses, which nodes share: see docs/nodestore.md.
	NodeStore NodeStore `json:"nodeStore"`
	// The etcd for external configuration, and possibly for the node store.
	Etcd Etcd `json:"etcd"`
	// The local mirror: the desired state that the agent starts with while neither the API server
	// nor etcd answers. It needs dataDir.
	Mirror Mirror `json:"mirror"`
	// Intervals of checks and repairs: see docs/healing.md.
	Healing Healing `json:"healing"`
	// The HTTP servers and the control socket.
	API API `json:"api"`
	// The log.
	Log Log `json:"log"`
}

// Kubernetes configures the source of Services, EndpointSlices, Nodes and Pods.
type Kubernetes struct {
	// "kubernetes" reads the API server; "files:DIR" reads every *.yaml and *.json in DIR and
	// watches it.
	Source string `json:"source" flag:"kube-source"`
	// Path of a kubeconfig. Empty: the service account of the pod. The server address must not be a
	// ClusterIP, because ClusterIPs work only once this agent runs.
	Kubeconfig string `json:"kubeconfig" flag:"kubeconfig"`
	// Address of the API server, for example https://192.0.2.1:6443, or a list of addresses. It
	// replaces the address in the kubeconfig or in the pod's environment. The agent uses one
	// address of a list and goes to the next when that one fails. Empty: no replacement.
	APIServer OneOrMore `json:"apiServer" flag:"kube-api-server" check:"url"`
	// Age of the served state above which the node is not ready (/readyz) while the API server, or
	// the directory, cannot be read. Until then /readyz?verbose shows the age. 0: no limit.
	StalenessLimit Duration `json:"stalenessLimit" min:"0s" max:"168h"`
	// Key of a taint that the agent removes from its Node once it is ready for the first time: see
	// docs/operations.md. It needs the rights get and patch of nodes. Empty: none.
	StartupTaint string `json:"startupTaint" flag:"startup-taint"`
	// Average number of requests per second to the API server; watches do not count.
	QPS int `json:"qps" min:"1" max:"1000"`
	// Number of requests that may exceed qps in a burst.
	Burst int `json:"burst" min:"1" max:"10000"`
}

// OneOrMore is a list of strings that may be written as one string where it has one.
type OneOrMore []string

// Services holds settings that the configuration of kube-proxy has, too.
type Services struct {
	// Networks of all pods of the cluster. A client address inside them belongs to a pod. Without
	// them the agent never masquerades ClusterIP traffic, and externalTrafficPolicy Local applies
	// to pods as well. "auto" alone: spec.podCIDRs of all Nodes.
	ClusterCIDRs []string `json:"clusterCIDRs" flag:"cluster-cidr" check:"podnetwork"`
	// Networks of the ClusterIPs. VPP rejects packets to addresses in them that belong to no
	// service, instead of routing them. Empty: the networks of the ServiceCIDR objects, if the API
	// server has them.
	ServiceCIDRs []string `json:"serviceCIDRs" flag:"service-cidr" check:"cidr"`
	// Addresses of this node on which node ports are served: "primary" (the first address of the
	// Node object, per family), networks, or both together; or "all" alone. An empty list means
	// all.
	NodePortAddresses []string `json:"nodePortAddresses" flag:"node-port-addresses" check:"nodeport"`
	// Networks whose addresses services may name in spec.externalIPs; an empty list means none.
	// "auto" alone follows the version of the API server, as Kubernetes does: all up to 1.39, and
	// none from 1.40 on. From 1.36 on, which deprecates the field, the log has a warning. The
	// author of a Service can receive the packets of pods to every port of an allowed address that
	// no other service has.
	AllowExternalIPs []string `json:"allowExternalIPs" flag:"allow-external-ips" check:"externalip"`
	// Ports of node addresses, and of the VPPs of all nodes, that no external IP or load-balancer
	// address may claim, because the nodes use them themselves. Ports of the agent's own servers
	// are always reserved.
	ReservedPorts []string `json:"reservedPorts" flag:"reserved-ports" check:"port"`
	// Reserve the ports of these addresses on which a process of the node listens, or did in the
	// last 10 minutes. No external IP or load-balancer address may claim them.
	ReserveListening bool `json:"reserveListening" flag:"reserve-listening"`
	// Masquerade every client of a ClusterIP, pods included.
	MasqueradeAll bool `json:"masqueradeAll" flag:"masquerade-all"`
	// Limits of the services of a node, so that no namespace takes the node from the others: see
	// docs/semantics.md.
	Limits Limits `json:"limits"`
}

// Limits bound the demand of a service, and of all services of a namespace together. A service
// above a limit is not served at all, and shows the reason. In a namespace above a limit, the
// oldest services are served. kube-proxy has no limits. 0 means no limit.
type Limits struct {
	// Largest number of frontends of a service: its ports times its addresses, including the
	// addresses for node ports.
	FrontendsPerService int `json:"frontendsPerService" min:"0" max:"1000000000"`
	// Largest number of frontends of all services of a namespace.
	FrontendsPerNamespace int `json:"frontendsPerNamespace" min:"0" max:"1000000000"`
	// Largest number of endpoints behind the frontends of a service: an endpoint counts once for
	// each frontend.
	BackendsPerService int `json:"backendsPerService" min:"0" max:"1000000000"`
	// Largest number of endpoints behind the frontends of all services of a namespace.
	BackendsPerNamespace int `json:"backendsPerNamespace" min:"0" max:"1000000000"`
	// Memory of VPP in MiB that services may take on a node, divided between namespaces: half of
	// main-heap-size in VPP's startup.conf.
	VPPMemory int `json:"vppMemory" min:"0" max:"1048576"`
	// Memory of the agent in MiB that services may take, divided between namespaces. 0: nine tenths
	// of the memory limit of the container, without 100 MiB; no limit if the container has none.
	AgentMemory int `json:"agentMemory" min:"0" max:"1048576"`
}

// VPP configures the connection to the dataplane.
type VPP struct {
	// "socket" talks to VPP through its sockets; "simulated" runs a simulated VPP inside the agent,
	// for evaluation and tests.
	Mode string `json:"mode" flag:"vpp" enum:"socket,simulated"`
	// Binary API socket of VPP (socksvr in its startup.conf).
	APISocket string `json:"apiSocket" flag:"vpp-api-socket"`
	// Statistics socket of VPP (statseg in its startup.conf). Empty or unreachable: the agent reads
	// the number of NAT sessions through the binary API, which stops the workers briefly.
	StatsSocket string `json:"statsSocket" flag:"vpp-stats-socket"`
	// Largest number of requests in flight. VPP carries them out without a pause, so more of them
	// hold its main thread for longer. 1 makes a cold start about twenty times slower.
	RequestWindow int `json:"requestWindow" min:"1" max:"4096"`
	// Time after which the agent treats the connection as lost because VPP has not answered a
	// request. The outcome of requests in flight is unknown then.
	ReplyTimeout Duration `json:"replyTimeout" min:"100ms" max:"5m"`
	// Percent of VPP's main heap that stays free: no row is added while less is free. VPP ends when
	// its memory is used up. 0: rows are always added.
	HeapReserve int `json:"heapReserve" min:"0" max:"90"`
}

// NAT44 are the settings of VPP's NAT44-ED plugin, which the agent owns on its node.
type NAT44 struct {
	// IPv4 address that replaces the source of a packet whose client is its own endpoint (hairpin),
	// and of clients that must be masqueraded. It must not be in use elsewhere. Empty: the last
	// address of the node's pod CIDR, or the node's own address if it has no pod CIDR.
	LoopbackIP string `json:"loopbackIP" flag:"nat-loopback-ip" check:"ipv4"`
	// Give interfaces the inside role of NAT44 beside the outside role. With both, VPP replaces the
	// source of every IPv4 packet that is not TCP, UDP or ICMP. So an interface where such packets
	// enter has the outside role alone: at once if a pod or a tunnel says so, otherwise within a
	// second of the first packet. There TCP connections to endpoints end after tcpTransitory
	// without a packet, each flow past services takes a session, and a connection past a service
	// fails if its client address and port have a session of a service. false: this holds for all
	// interfaces.
	InsideRole bool `json:"insideRole"`
	// Let all workers of VPP do NAT. By default the first worker does NAT for all, so that
	// endpoints are added and removed one by one and share connections evenly. With all workers,
	// the address of a client decides which endpoints it can get. A row that grows from one
	// endpoint, or shrinks to one, is then replaced, which ends its connections. It takes effect
	// when VPP starts.
	AllWorkers bool `json:"allWorkers"`
	// Limit of sessions of each worker with which the agent enables the plugin. The agent adds 1 to
	// an even limit, by which it recognises that it has enabled the plugin, and raises a lower
	// limit of a plugin that is already enabled. 0 keeps VPP's value.
	SessionLimit int `json:"sessionLimit" min:"0" max:"67108864"`
	// Highest value to which the agent raises the limit of sessions before active sessions reach
	// it; it never lowers the limit. A session takes about 350 bytes of VPP's main heap. 0, or less
	// than sessionLimit: the agent does not raise the limit above sessionLimit.
	SessionLimitMax int `json:"sessionLimitMax" min:"0" max:"67108864"`
	// Interval at which the agent checks how full the session table is; from 80 percent on it frees
	// expired sessions.
	SessionCheckInterval Duration `json:"sessionCheckInterval" min:"1s" max:"10m"`
	// Time for which an endpoint that has left its EndpointSlices keeps its TCP connections. It
	// stays in VPP for them and gets no new connections. 0s: until the last connection has ended.
	// Endpoints that are still in the slices have no limit.
	DrainLimit Duration `json:"drainLimit" min:"0s" max:"168h"`
	// Silence after which a TCP connection that one side has closed counts as closed by both, if
	// its endpoint does not serve any more. VPP does not tell the two apart. Half-closed
	// connections may be silent for so long. For as long after a close, a new connection from the
	// same client port can reach the endpoint.
	ClosedAfter Duration `json:"closedAfter" min:"1s" max:"24h"`
	// Idle timeout after which VPP may reuse a session, by protocol.
	Timeouts Timeouts `json:"timeouts"`
}

// Timeouts are the idle timeouts of NAT44 sessions, in whole seconds.
type Timeouts struct {
	// Idle timeout of UDP sessions.
	UDP Duration `json:"udp" min:"1s" max:"24h"`
	// Idle timeout of established TCP connections.
	TCPEstablished Duration `json:"tcpEstablished" min:"1s" max:"168h"`
	// Idle timeout of TCP connections that are opening or closing.
	TCPTransitory Duration `json:"tcpTransitory" min:"1s" max:"24h"`
	// Idle timeout of ICMP sessions.
	ICMP Duration `json:"icmp" min:"1s" max:"24h"`
}

// External configures the file of external configuration. Keys in etcd and the control socket are
// further sources.
type External struct {
	// Path of a document of kind ExternalConfiguration, YAML or JSON. The agent watches it; the
	// file may be absent. Empty: none.
	File string `json:"file" flag:"external-file"`
}

// SNAT is dynamic source NAT for traffic of pods that leaves the cluster. The agent refuses it,
// with a warning, where packets between pods of different nodes leave through the same interface
// without an overlay.
type SNAT struct {
	// Replace the addresses of pods by an address of the node where their packets leave the
	// cluster.
	Enabled bool `json:"enabled" flag:"snat"`
	// Name of the interface in VPP through which pods leave. Empty: the uplink, which has the
	// default route.
	Interface string `json:"interface"`
	// IPv4 address of the interface that replaces the address of pods. Empty: the first address of
	// the interface. Pods cannot reach node ports at its other addresses.
	Address string `json:"address" check:"ipv4"`
	// Ports of the overlay between nodes, which NAT does not translate at the addresses of the
	// interface.
	OverlayPorts []string `json:"overlayPorts" check:"port"`
}

// Addresses lets VPP answer ARP and ND for the load-balancer addresses of AddressPools, by VRRP.
// All nodes need the same settings.
type Addresses struct {
	// VPP answers. It needs VPP's plugin vrrp.
	Enabled bool `json:"enabled" flag:"addresses"`
	// Interval between advertisements of the owner, a multiple of 10ms. The next node takes over
	// after three of them.
	Interval Duration `json:"interval" min:"100ms" max:"10s"`
}

// HostRoute lets processes of the host reach ClusterIPs: the agent keeps a route in the kernel for
// each service CIDR. It needs the capability NET_ADMIN. The agent leaves a route of another owner
// for the same network alone, and then adds none.
type HostRoute struct {
	// Name of the host's interface whose other end is in VPP, for example of a tap. Empty: no
	// routes.
	Interface string `json:"interface" flag:"host-route-interface"`
	// Address of VPP at the other end, or one of each family, separated by a comma. Service
	// CIDRs of another address family get no route.
	Gateway string `json:"gateway" flag:"host-route-gateway"`
	// Source of the packets: "node" is the address of the Node object, whose packets must reach
	// the host through VPP. Then endpoints in the network of the same host answer, too. With
	// "kernel" the kernel chooses.
	Source string `json:"source" flag:"host-route-source" enum:"kernel,node"`
	// Node ports, for example 30000-32767, at which processes of the host reach VPP also at the
	// node's own addresses. The agent adds rules of policy routing, and the host accepts packets
	// with its own addresses as source from the interface. Empty: no rules.
	NodePorts string `json:"nodePorts" flag:"host-route-node-ports"`
}

// NodeStore configures where the nodes share node IDs and VPP addresses.
type NodeStore struct {
	// Store of node IDs and VPP addresses: auto, etcd, kubernetes (Leases of the API server) or
	// none (no node ID, and other nodes do not learn the addresses). auto is etcd if etcd has
	// endpoints or is embedded; otherwise kubernetes if kubernetes.source is the API server and
	// etcd.mode is not "none"; otherwise none.
	Type string `json:"type" flag:"node-store" enum:"auto,etcd,kubernetes,none"`
	// Namespace of the Leases. Empty: the namespace of the pod (environment variable
	// POD_NAMESPACE), otherwise troupe-system.
	Namespace string `json:"namespace" check:"namespace"`
}

// Etcd configures the connection to etcd.
type Etcd struct {
	// "external" uses the endpoints; "embedded" runs an etcd inside this agent, for a cluster of
	// one node or for evaluation; "none" means no etcd, and no node store unless nodeStore.type is
	// "kubernetes".
	Mode string `json:"mode" flag:"etcd" enum:"external,embedded,none"`
	// URLs of the etcd members, for example https://10.0.0.1:2379.
	Endpoints []string `json:"endpoints" flag:"etcd-endpoints" check:"url"`
	// Path of the certificate authority that signed the members' certificates (PEM). Empty: the
	// certificate authorities of the system.
	CA string `json:"ca" flag:"etcd-ca"`
	// Path of this agent's certificate (PEM). Needs key.
	Cert string `json:"cert" flag:"etcd-cert"`
	// Path of the key of cert (PEM).
	Key string `json:"key" flag:"etcd-key"`
	// Directory for the data of an embedded etcd where dataDir is empty.
	DataDir string `json:"dataDir"`
	// Prefix of all keys. Clusters that share one etcd need different prefixes.
	Prefix string `json:"prefix"`
	// Time for which the ID of a node stays reserved after the node has left Kubernetes, in any
	// node store.
	GracePeriod Duration `json:"gracePeriod" min:"0s" max:"720h"`
}

// Mirror configures when the agent uses the local mirror, and when it empties the mirror.
type Mirror struct {
	// Time that the source has for its first complete list before the agent uses the mirror
	// instead. The agent does not wait if the source reports an error.
	Grace Duration `json:"grace" min:"100ms" max:"10m"`
	// Time for which a healthy source must report no service at all before the mirror drops its
	// services. A source that has lost its data looks the same.
	ConfirmEmpty Duration `json:"confirmEmpty" min:"1s" max:"168h"`
}

// Healing configures checks and repairs.
type Healing struct {
	// Longest time between two drift checks, which read VPP and compare it with the desired state.
	DriftCheckInterval Duration `json:"driftCheckInterval" min:"1s" max:"24h"`
	// Shortest time between two drift checks. A drift check is about 50 requests. Reading takes at
	// most a thousandth of the time: with 1s a hundred rows are checked about every 1 s, and ten
	// thousand every 30 s.
	DriftCheckLeast Duration `json:"driftCheckLeast" min:"100ms" max:"24h"`
	// Longest time between two reads of VPP's interfaces; the agent reads them at once after an
	// event.
	RediscoverInterval Duration `json:"rediscoverInterval" min:"100ms" max:"1h"`
	// First back-off of retries; it doubles up to 30 s.
	Backoff Duration `json:"backoff" min:"10ms" max:"30s"`
	// Time for which a part may be unhealthy before escalation begins. Each step of the escalation
	// has the same time to help: drift check, resync, restart of actors, exit of the process.
	Patience Duration `json:"patience" min:"5s" max:"1h"`
}

// API configures the servers of the agent.
type API struct {
	// Address of the read-only HTTP server. It serves health, metrics and state over loopback, and
	// only health and metrics to others. troupe --node needs it on loopback. Empty: none.
	HTTPAddress string `json:"httpAddress" flag:"http-address" check:"hostport"`
	// Further host names under which clients may reach httpAddress, for example the name of a proxy
	// in front of it. localhost, the name of the node and all IP addresses are always allowed.
	// Requests for other hosts and requests of pages of other sites get 403, because a browser
	// would give the state of the agent to any site (DNS rebinding).
	HTTPAllowedHosts []string `json:"httpAllowedHosts" flag:"http-allowed-hosts" check:"host"`
	// Address of the health checks of this node for load balancers and the kubelet, with the paths
	// and answers of kube-proxy: /healthz and /livez. While the address is in use, the agent logs
	// it and retries. Empty: none.
	HealthzBindAddress string `json:"healthzBindAddress" flag:"healthz-bind-address" check:"hostport"`
	// Time for which VPP may be lost before /healthz and the health-check node ports are 503. VPP
	// is lost while it is disconnected or has no interface of the node. A restart of VPP should
	// take less.
	HealthzLostAfter Duration `json:"healthzLostAfter" min:"100ms" max:"10m"`
	// Address that serves only /metrics to the network, for example 0.0.0.0:9993. The metrics have
	// numbers of kinds of actors and of services, no names. While the address is in use, the agent
	// logs it and retries. Empty: none; httpAddress serves /metrics, too.
	MetricsBindAddress string `json:"metricsBindAddress" flag:"metrics-bind-address" check:"hostport"`
	// Add exemplars to the latency of changes for clients that read OpenMetrics: the cause of a
	// change, which troupe events --cause finds.
	MetricsExemplars bool `json:"metricsExemplars" flag:"metrics-exemplars"`
	// Path of the unix socket (mode 0600) that also serves state-changing calls. Empty: none.
	ControlSocket string `json:"controlSocket" flag:"control-socket"`
	// Address of an OpenTelemetry collector (OTLP over HTTP), for example http://127.0.0.1:4318. It
	// gets a trace of each change of a service, from the change in Kubernetes until VPP holds it.
	// Traces contain names of services. Empty: no traces.
	OTLPEndpoint string `json:"otlpEndpoint" flag:"otlp-endpoint" check:"url"`
	// Remove the bodies of messages and the states of actors from the answers of httpAddress. The
	// control socket has them.
	RedactMessages bool `json:"redactMessages" flag:"redact-messages"`
	// Allow chaos faults, drills, and suspending actors through the control socket: see
	// docs/chaos.md. Without it the actors have no fault hooks.
	EnableChaos bool `json:"enableChaos" flag:"enable-chaos"`
}

// Log configures the log, which the agent writes to standard error.
type Log struct {
	// Format of a log line: json or text.
	Format string `json:"format" flag:"log-format" enum:"json,text"`
	// Lowest severity that the agent logs: debug, info, warn or error.
	Level string `json:"level" flag:"log-level" enum:"debug,info,warn,error"`
}
