package api

import "time"

// Interfaces are the interfaces of VPP with their roles.
type Interfaces struct {
	// Uplink is the name of the interface with the default route; "" = none.
	Uplink string `json:"uplink,omitempty"`
	// NodeAddresses are the addresses of the interfaces that have an address of this node in
	// Kubernetes, "ip/len"; of the uplink if there are none.
	NodeAddresses []string `json:"nodeAddresses"`
	// Unplaced are the addresses of pods and local endpoints of this node to which no interface
	// leads, ordered.
	Unplaced []string `json:"unplaced,omitempty"`
	// Page has the interfaces, ordered by index.
	Page[Interface]
}

// Interface is one interface of VPP.
type Interface struct {
	Index uint32 `json:"index" column:"INDEX"`
	Name  string `json:"name" column:"NAME"`
	// Kind is pod, uplink, internal or other.
	Kind string `json:"kind" column:"KIND"`
	// Up is true if the interface is administratively up and has a link.
	Up bool `json:"up" column:"UP" tone:"warn"`
	// Frontend: packets of clients enter here. Backend: a local endpoint is behind it.
	Frontend bool `json:"frontend" column:"FRONTEND"`
	Backend  bool `json:"backend" column:"BACKEND"`
	// Addresses are "ip/len".
	Addresses []string `json:"addresses" column:"ADDRESSES"`
	// Pods behind it, "namespace/name".
	Pods []string `json:"pods" column:"PODS"`
	// OtherProtocols is why packets that are not TCP, UDP or ICMP enter here; NAT44 leaves them
	// alone. "" = there are none.
	OtherProtocols string `json:"otherProtocols,omitempty" column:"OTHER PROTOCOLS,wide"`
}

// Addresses are the load-balancer addresses of pools that Services have, as this node sees them.
type Addresses struct {
	// Page has the addresses, ordered.
	Page[Address]
}

// Address is one load-balancer address.
type Address struct {
	Address string `json:"address" column:"ADDRESS"`
	// Services have it, "namespace/name".
	Services []string `json:"services" column:"SERVICES"`
	// State of this node: owner, backup, stopped, or none. VPP answers ARP and ND while it is
	// owner.
	State string `json:"state" column:"STATE"`
	// Since is when this node became the owner, as far as the agent has seen it.
	Since time.Time `json:"since,omitzero" column:"SINCE,ago"`
	// Router is the virtual router with the address, "ID/FAMILY on interface INDEX".
	Router    string `json:"router" column:"VIRTUAL ROUTER,wide"`
	Interface string `json:"interface,omitempty" column:"INTERFACE,wide"`
	// Priority of this node in the election.
	Priority uint32 `json:"priority,omitempty" column:"PRIORITY,wide"`
	// Why this node takes no part in the election; "" = it does.
	Why string `json:"why,omitempty" column:"WHY NOT"`
}

// States of an address: the node with Owner answers, a node with NoRouter takes no part.
const (
	Owner    = "owner"
	NoRouter = "none"
)

// AddressesRequest is the body of POST /api/v1/addresses.
type AddressesRequest struct {
	// Leave makes this node give up all addresses until VPP or the agent restarts; false makes it
	// take part in elections again.
	Leave bool `json:"leave"`
}

// Nodes are the nodes of the cluster.
type Nodes struct {
	// Self is the name of this node.
	Self string `json:"self"`
	// Claim is the state of this node's claim to its ID: pending, held, fenced, or none without
	// a store.
	Claim string `json:"claim"`
	// Reason why the claim is not held, or the latest error of the node store.
	Reason string `json:"reason,omitempty"`
	// Connected is true while the node store answers.
	Connected bool `json:"connected"`
	// Page has the nodes, ordered by name.
	Page[Node]
	// Renderer says which renderer serves IPv4 on this node, and why.
	Renderer string `json:"renderer"`
	// Approximations of this node, ordered by renderer and reason.
	Approximations []Approximation `json:"approximations"`
}

// Approximation is a difference between the request of Kubernetes and this node, for all services
// with that request.
type Approximation struct {
	Renderer string `json:"renderer" column:"RENDERER"`
	// Services is the number of these services.
	Services int `json:"services" column:"SERVICES"`
	// Wanted and Rendered belong to the first service.
	Wanted   string `json:"wanted" column:"WANTED"`
	Rendered string `json:"rendered" column:"RENDERED"`
	Why      string `json:"why" column:"WHY"`
}

// Node is one node of the cluster.
type Node struct {
	Name string `json:"name" column:"NAME"`
	// ID is 0 while the node has none.
	ID uint32 `json:"id" column:"ID"`
	// VPPAddresses are "ip/len".
	VPPAddresses        []string `json:"vppAddresses" column:"VPP ADDRESSES"`
	ManagementAddresses []string `json:"managementAddresses" column:"MANAGEMENT ADDRESSES"`
	PodCIDRs            []string `json:"podCIDRs" column:"POD CIDRS"`
}

// PodInterface is the assigned interface of a pod in VPP.
type PodInterface struct {
	// Pod is "namespace/name".
	Pod string `json:"pod"`
	// Interface is its name in VPP; "" = it has none.
	Interface string `json:"interface"`
	// Cause is the ID under which the journal has the command and its effects.
	Cause uint64 `json:"cause"`
}

// PodInterfaceRequest is the body of PUT /api/v1/pods/{namespace}/{name}/interface.
type PodInterfaceRequest struct {
	// Interface is the name of an interface in VPP, for example "tap3".
	Interface string `json:"interface"`
}
