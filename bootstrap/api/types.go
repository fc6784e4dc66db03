package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/show"
)

// Readiness reports whether the node is ready, part by part.
type Readiness struct {
	// Ready is true when every part is OK.
	Ready bool `json:"ready"`
	// Since is when Ready last changed.
	Since time.Time `json:"since"`
	// Parts are ordered by name.
	Parts []Part `json:"parts"`
}

// Part is the state of one part of the agent.
type Part struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Reason why the part is not OK, one line. If the part is OK, a warning or "".
	Reason string `json:"reason,omitempty"`
	// Epoch of a renderer; 0 for others.
	Epoch uint64 `json:"epoch,omitempty"`
}

// NodeHealth is the answer of /healthz, with the fields of kube-proxy.
type NodeHealth struct {
	// LastUpdated is when VPP was last known to be in the desired state.
	LastUpdated time.Time `json:"lastUpdated"`
	// CurrentTime is the time of the request.
	CurrentTime time.Time `json:"currentTime"`
	// Eligible is false if the node is about to leave the cluster, so that load balancers should
	// use another one.
	Eligible bool `json:"nodeEligible"`
	// Healthy is false if a change has been pending for too long.
	Healthy bool `json:"healthy"`
}

// ServiceState is the state of a service.
type ServiceState string

// States of a service.
const (
	// ServiceInSync means that VPP holds every row of it.
	ServiceInSync ServiceState = "in-sync"
	// ServicePending means that a change has not reached VPP yet.
	ServicePending ServiceState = "pending"
	// ServiceFailed means that VPP refused an operation; the renderer retries.
	ServiceFailed ServiceState = "failed"
	// ServiceQuarantined means that its actor failed too often and is stopped for a while; its last
	// good rows stay.
	ServiceQuarantined ServiceState = "quarantined"
	// ServicePartly means that VPP holds what it can, and lacks frontends that it cannot serve, for
	// example of SCTP.
	ServicePartly ServiceState = "partly"
	// ServiceNotServed means that no frontend is served: VPP cannot serve any of them, or the
	// service has none, for example because it is headless.
	ServiceNotServed ServiceState = "not-served"
)

// Service is the summary of a service.
type Service struct {
	// Key is "namespace/name".
	Key   string       `json:"service"`
	State ServiceState `json:"state"`
	// Generation of its latest input.
	Generation uint64 `json:"generation"`
	// Frontends, Endpoints and Rows count its desired frontends, their distinct endpoints, and its
	// rows in VPP.
	Frontends int `json:"frontends"`
	Endpoints int `json:"endpoints"`
	Rows      int `json:"rows"`
	// Changed is the time of the latest change.
	Changed time.Time `json:"changed,omitzero"`
	// Error is the latest error; "" = none.
	Error string `json:"error,omitempty"`
}

// ServiceDetail is a service with its desired frontends, the rows of the renderers for them, and
// the rows in VPP.
type ServiceDetail struct {
	Service
	// NotServed is the reason why the service has no frontends; "" = it may have some.
	NotServed string `json:"notServed,omitempty"`
	// Kubernetes is the Service as the agent received it, reduced to the fields that matter for
	// serving; left out while there is none.
	Kubernetes json.RawMessage `json:"kubernetes,omitempty"`
	// Uses are the endpoints of its slices, at most MaxLimit. Endpoints that are not used
	// everywhere come first.
	Uses []EndpointUse `json:"uses"`
	// Wanted are the frontends that Kubernetes requires.
	Wanted       []show.Frontend    `json:"wanted"`
	HealthChecks []show.HealthCheck `json:"healthChecks"`
	// Rendered are the desired rows.
	Rendered []show.Row `json:"rendered"`
	// InVPP are the rows that the renderer last read from VPP or wrote to it, except rows of
	// frontends that another service owns.
	InVPP []show.Row `json:"inVPP"`
	// Draining are the endpoints that keep their connections through VPP and get no new
	// connections, ordered by address.
	Draining []DrainingEndpoint `json:"draining"`
	// Approximations are the approximations of a plan of this node, without conflicts.
	Approximations []show.Approximation `json:"approximations"`
	// Conflicts are frontends that another service owns.
	Conflicts []Conflict `json:"conflicts"`
	// Problems are the invalid parts of the input.
	Problems []show.Problem `json:"problems"`
}

// DrainingEndpoint is an endpoint that keeps its connections and gets no new connections.
type DrainingEndpoint struct {
	// Address is "ip:port".
	Address string `json:"address"`
	// Since is the time at which it began to drain, not before the start of the agent. Left out for
	// a moment after that.
	Since time.Time `json:"since,omitzero"`
	// Connections counts the connections in VPP through all frontends of the service; left out
	// until VPP has been asked.
	Connections *int `json:"connections,omitempty"`
}

// State describes the endpoint in words: "draining, 12 connections, since 14:02".
func (d DrainingEndpoint) State() string {
	text := "draining"
	if d.Connections != nil {
		text += fmt.Sprintf(", %d connections", *d.Connections)
	}
	if !d.Since.IsZero() {
		text += ", since " + d.Since.UTC().Format("15:04")
	}
	return text
}

// EndpointUse describes how this node uses an endpoint of a slice.
type EndpointUse struct {
	Slice   string `json:"slice"`
	Address string `json:"address"`
	Node    string `json:"node,omitempty"`
	// Pod is "namespace/name" if the slice names a pod.
	Pod string `json:"pod,omitempty"`
	// Ready, Serving and Terminating are its conditions.
	Ready       bool `json:"ready"`
	Serving     bool `json:"serving"`
	Terminating bool `json:"terminating"`
	// Frontends counts the frontends that could forward to it, Forwards the frontends that do.
	Frontends int `json:"frontends"`
	Forwards  int `json:"forwards"`
	// Why is the reason why it is not used everywhere; "" = it is.
	Why string `json:"why,omitempty"`
}

// Conflict is a frontend that another service owns.
type Conflict struct {
	Frontend string `json:"frontend"`
	Owner    string `json:"owner"`
}

// Packet explains how this node handles the first packet of a connection.
type Packet struct {
	// Source is an address, Destination "ip:port/PROTO".
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// Class of the client: pod, node or remote.
	Class string `json:"class"`
	// Action is forward, reject, drop, or none for a packet that is not service traffic.
	Action string `json:"action"`
	// Because are the rules that decided.
	Because []string `json:"because"`
	// Service that has the address, "namespace/name"; "" = none.
	Service string `json:"service"`
	// Frontend that decided; left out if a rule about service addresses did.
	Frontend *show.Frontend `json:"frontend,omitempty"`
	// Backends are the endpoints, one of which gets the packet: first the endpoints that Kubernetes
	// asks for, then endpoints that only VPP has.
	Backends []PacketBackend `json:"backends"`
	// Others are frontends with this destination that do not decide.
	Others []PacketOther `json:"others"`
	// Wanted and InVPP are the rows of the destination.
	Wanted []show.Row `json:"wanted"`
	InVPP  []show.Row `json:"inVPP"`
	// VPP compares Wanted and InVPP: as wanted, missing, other than wanted, left over, or no row.
	VPP            string               `json:"vpp"`
	Approximations []show.Approximation `json:"approximations"`
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
}

// PacketOther is a frontend that does not decide.
type PacketOther struct {
	Service string `json:"service"`
	// From is the class of its clients, Action its action.
	From   string `json:"from"`
	Action string `json:"action"`
	Why    string `json:"why"`
}

// Interfaces are the interfaces of VPP with their roles.
type Interfaces struct {
	// Uplink is the name of the interface with the default route; "" = none.
	Uplink string `json:"uplink,omitempty"`
	// NodeAddresses are the addresses of the uplink, "ip/len".
	NodeAddresses []string `json:"nodeAddresses"`
	// Items are ordered by index.
	Items []Interface `json:"items"`
	// Next is the cursor of the next page; "" = this is the last one. Total counts the items of all
	// pages. A Backend leaves both out.
	Next  string `json:"next,omitempty"`
	Total int    `json:"total"`
}

// Interface is one interface of VPP.
type Interface struct {
	Index uint32 `json:"index"`
	Name  string `json:"name"`
	// Kind is pod, uplink, internal or other.
	Kind string `json:"kind"`
	// Up is true if the interface is administratively up and has a link.
	Up bool `json:"up"`
	// Addresses are "ip/len".
	Addresses []string `json:"addresses"`
	// Pods behind it, "namespace/name".
	Pods []string `json:"pods"`
	// Frontend: packets of clients enter here. Backend: a local endpoint is behind it.
	Frontend bool `json:"frontend"`
	Backend  bool `json:"backend"`
}

// Nodes are the nodes of the cluster.
type Nodes struct {
	// Self is the name of this node.
	Self string `json:"self"`
	// Claim is the state of this node's claim to its ID: pending, held, fenced, or none without a
	// store.
	Claim string `json:"claim"`
	// Reason why the claim is not held, or the latest error of the node store.
	Reason string `json:"reason,omitempty"`
	// Connected is true while the node store answers.
	Connected bool `json:"connected"`
	// Items are ordered by name.
	Items []Node `json:"items"`
	// Next is the cursor of the next page; "" = this is the last one. Total counts the items of all
	// pages. A Backend leaves both out.
	Next  string `json:"next,omitempty"`
	Total int    `json:"total"`
	// Approximations of this node, ordered by renderer and reason.
	Approximations []Approximation `json:"approximations"`
}

// Approximation is a difference between the request of Kubernetes and this node, for all services
// with that request.
type Approximation struct {
	Renderer string `json:"renderer"`
	// Services is the number of these services.
	Services int `json:"services"`
	// Wanted and Rendered belong to the first service.
	Wanted   string `json:"wanted"`
	Rendered string `json:"rendered"`
	Why      string `json:"why"`
}

// Node is one node of the cluster.
type Node struct {
	Name string `json:"name"`
	// ID is 0 while the node has none.
	ID uint32 `json:"id"`
	// VPPAddresses are "ip/len".
	VPPAddresses        []string `json:"vppAddresses"`
	ManagementAddresses []string `json:"managementAddresses"`
	PodCIDRs            []string `json:"podCIDRs"`
}

// Sessions is the table of NAT sessions in VPP.
type Sessions struct {
	// Time is when the agent last read it.
	Time time.Time `json:"time"`
	// BusiestWorker is the number of sessions of the worker with the most sessions. Limit is the
	// limit of each worker; 0 = unknown.
	BusiestWorker uint64 `json:"busiestWorker"`
	Limit         uint32 `json:"limit"`
	// Alarm is true while the table is nearly full and the agent can neither free sessions nor
	// raise the limit.
	Alarm bool `json:"alarm"`
	// Protocols are the sessions by protocol, as of the last survey; empty = there was none yet.
	Protocols []ProtocolSessions `json:"protocols"`
}

// ProtocolSessions are the sessions of one protocol.
type ProtocolSessions struct {
	// Protocol is tcp, udp, icmp or other.
	Protocol string `json:"protocol"`
	// Sessions occupy a place in the table. Expired are the sessions among them whose timeout has
	// passed.
	Sessions uint64 `json:"sessions"`
	Expired  uint64 `json:"expired"`
}

// ServiceSessions are live NAT sessions of a service.
type ServiceSessions struct {
	// Time is when VPP was asked.
	Time time.Time `json:"time"`
	// Items are at most 1000, the most recently active first.
	Items []Session `json:"items"`
	// Incomplete is the reason why there may be more; "" = these are all.
	Incomplete string `json:"incomplete,omitempty"`
}

// Session is one NAT session.
type Session struct {
	// Protocol is TCP, UDP or the number of another one.
	Protocol string `json:"protocol"`
	// Client, Frontend and Backend are "ip:port". ClientAs is the address of the client as the
	// backend sees it, if it is replaced.
	Client   string `json:"client"`
	ClientAs string `json:"clientAs,omitempty"`
	Frontend string `json:"frontend"`
	Backend  string `json:"backend"`
	// IdleSeconds is the time since the last packet. An Expired session only keeps its place in the
	// table.
	IdleSeconds float64 `json:"idleSeconds"`
	Expired     bool    `json:"expired"`
	Packets     uint64  `json:"packets"`
	Bytes       uint64  `json:"bytes"`
}

// EventQuery selects events of the journal.
type EventQuery struct {
	// Before selects events with a smaller sequence number; 0 = from the newest. After selects
	// events with a larger one.
	Before, After uint64
	// Cause selects the effects of one change or command; 0 = all.
	Cause uint64
	// Limit is the highest number of events to return, 1 to MaxLimit.
	Limit int
	// Kind and Object select; "" = all.
	Kind, Object string
}

// EventPage is a part of the journal.
type EventPage struct {
	// Items are ordered from the newest to the oldest.
	Items []Event `json:"items"`
	// Next continues the query as Before; 0 = that was all.
	Next uint64 `json:"next,omitempty"`
}

// Event is one line of the journal.
type Event struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// Kind is service, render, command, audit, resync, healing, link, interfaces, node, source,
	// readiness or fault.
	Kind  string `json:"kind"`
	Actor string `json:"actor"`
	// Object of the event: a service, an interface, a node; "" = none.
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
	// Cause is the ID of the change or command that the event is an effect of; all effects of one
	// have the same. 0 = none.
	Cause uint64 `json:"cause,omitempty"`
	// Method is update, upstream-resync, downstream-resync or full-resync; "" = the event is not a
	// transaction.
	Method string `json:"method,omitempty"`
	// Operations are the planned ones, on VPP or as steps of a command, each as one line.
	Operations []string `json:"operations,omitempty"`
	// Executed are the operations that were executed, if one has failed.
	Executed []string `json:"executed,omitempty"`
	// Error is "" after success.
	Error string `json:"error,omitempty"`
}

// Resync is the progress of the renderers, and repairs.
type Resync struct {
	// Renderers are ordered by name.
	Renderers []RendererSync `json:"renderers"`
	// Healing counts the escalation steps, ordered by part and step.
	Healing []HealingCount `json:"healing"`
	// Ill are the unhealthy parts, ordered by name.
	Ill []IllPart `json:"ill"`
}

// HealingCount counts the repairs of a part by one escalation step.
type HealingCount struct {
	Part string `json:"part"`
	// Rung is the escalation step: key, object, downstream, full, subtree or exit.
	Rung  string `json:"rung"`
	Count uint64 `json:"count"`
}

// IllPart is an unhealthy part that escalation steps may repair.
type IllPart struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
	// Since is when the part became unhealthy, Next the time of the next escalation step.
	Since time.Time `json:"since"`
	Next  time.Time `json:"next"`
	// Rung is the latest escalation step; "none" = none yet.
	Rung string `json:"rung"`
}

// RendererSync is the state of one renderer.
type RendererSync struct {
	Renderer string `json:"renderer"`
	// Epoch counts its starts from a read of VPP.
	Epoch uint64 `json:"epoch"`
	// InSync is true if VPP is in the desired state.
	InSync bool   `json:"inSync"`
	Reason string `json:"reason,omitempty"`
	// Differences found and operations made by the latest drift check or resync.
	Differences uint32 `json:"differences"`
	Operations  uint32 `json:"operations"`
	Error       string `json:"error,omitempty"`
}

// ResyncRequest is the body of POST /api/v1/resync.
type ResyncRequest struct {
	// Reason for the journal.
	Reason string `json:"reason"`
	// Method is the scope: "upstream" reads the desired state again, "downstream" VPP, "full" or ""
	// both.
	Method ResyncMethod `json:"method"`
}

// ResyncMethod is the scope of a resync.
type ResyncMethod string

// Methods of a ResyncRequest.
const (
	ResyncFull       ResyncMethod = "full"
	ResyncUpstream   ResyncMethod = "upstream"
	ResyncDownstream ResyncMethod = "downstream"
)

// Diff is the difference between VPP and the desired state.
type Diff struct {
	// Time is when the reading of VPP began. On TCP it may be some seconds ago, because clients
	// share a reading; the control socket reads VPP for each request. A Backend leaves it out.
	Time time.Time `json:"time,omitzero"`
	// Renderers are ordered by name.
	Renderers []RendererDiff `json:"renderers"`
}

// RendererDiff is the part of one renderer.
type RendererDiff struct {
	Renderer string `json:"renderer"`
	// Operations would bring VPP to the desired state, each as one line; empty = it is in that
	// state.
	Operations []string `json:"operations"`
	// Error is the reason why VPP could not be read; "" = none.
	Error string `json:"error,omitempty"`
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the next page; "" = this is the last one.
	Next string `json:"next,omitempty"`
	// Total counts the items of all pages.
	Total int `json:"total"`
}

// Error is the body of every error.
type Error struct {
	Error string `json:"error"`
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
