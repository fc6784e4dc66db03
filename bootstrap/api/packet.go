package api

import (
	"time"
)

// ClassUnknown is the class of a client that is not of this node: without a cluster CIDR an address
// does not tell whether it is a pod.
const ClassUnknown = "pod or remote"

// Packet explains how this node handles the first packet of a connection.
type Packet struct {
	// Source is an address, Destination "ip:port/PROTO".
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// Class of the client: pod, node, remote, or "pod or remote".
	Class string `json:"class"`
	// Action is forward, reject, drop, or none for a packet that is not service traffic.
	Action string `json:"action"`
	// Because are the rules that decided.
	Because []string `json:"because"`
	// Service that has the address, "namespace/name"; "" = none.
	Service string `json:"service"`
	// Frontend that decided; left out if a rule about service addresses did.
	Frontend *Frontend `json:"frontend,omitempty"`
	// Backends are the endpoints, one of which gets the packet: first the endpoints that
	// Kubernetes asks for, then endpoints that only VPP has.
	Backends []PacketBackend `json:"backends"`
	// Others are frontends with this destination that do not decide.
	Others []PacketOther `json:"others"`
	// Wanted and InVPP are the rows of the destination. InVPP was read from VPP at Read, or
	// written to it since.
	Wanted []Row     `json:"wanted"`
	InVPP  []Row     `json:"inVPP"`
	Read   time.Time `json:"read,omitzero"`
	// VPP compares Wanted and InVPP: as wanted, missing, other than wanted, left over, or no
	// row.
	VPP            string                  `json:"vpp"`
	Approximations []FrontendApproximation `json:"approximations"`
}

// PacketBackend is an endpoint for a packet.
type PacketBackend struct {
	// Address is "ip:port".
	Address string `json:"address"`
	// Share of new connections, 0 to 1: as Kubernetes asks, and by the weights in VPP.
	Share      float64 `json:"share"`
	ShareInVPP float64 `json:"shareInVPP"`
	// SourceReplaced is true if the source becomes an address of this node.
	SourceReplaced bool `json:"sourceReplaced"`
	// Fault is the reason why connections to it are lost; "" = none is known.
	Fault string `json:"fault,omitempty"`
}

// PacketOther is a frontend that does not decide.
type PacketOther struct {
	Service string `json:"service" column:"SERVICE"`
	// From is the class of its clients, Action its action.
	From   string `json:"from" column:"FROM"`
	Action string `json:"action" column:"ACTION"`
	Why    string `json:"why" column:"WHY"`
}
