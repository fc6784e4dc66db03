package api

import (
	"encoding/json"
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
	// Reason why the part is not OK, one line; if it is OK, a warning or "".
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
	// Eligible is false if the node is about to leave the cluster, so that load balancers should use another one.
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
	// ServiceQuarantined means that its actor failed too often and is stopped for a while; its last good rows stay.
	ServiceQuarantined ServiceState = "quarantined"
	// ServiceNotServed means that the service needs no rows, for example because it is headless.
	ServiceNotServed ServiceState = "not-served"
)

// Service is the summary of a service.
type Service struct {
	// Key is "namespace/name".
	Key   string       `json:"service"`
	State ServiceState `json:"state"`
	// Generation of its latest input.
	Generation uint64 `json:"generation"`
	// Frontends, Endpoints and Rows count its desired frontends, their distinct endpoints, and its rows in VPP.
	Frontends int `json:"frontends"`
	Endpoints int `json:"endpoints"`
	Rows      int `json:"rows"`
	// Changed is the time of the latest change.
	Changed time.Time `json:"changed,omitzero"`
	// Error is the latest error; "" = none.
	Error string `json:"error,omitempty"`
}

// ServiceDetail is a service with its desired frontends, the rows of the renderers for them, and the rows in VPP.
type ServiceDetail struct {
	Service
	// NotServed is the reason why the service has no frontends; "" = it may have some.
	NotServed string `json:"notServed,omitempty"`
	// Kubernetes is the Service as the agent has got it, reduced to what matters for serving; left out while there is none.
	Kubernetes json.RawMessage `json:"kubernetes,omitempty"`
	// Uses are the endpoints of its slices, those that are not used everywhere first; at most MaxLimit.
	Uses []EndpointUse `json:"uses"`
	// Wanted are the frontends that Kubernetes requires.
	Wanted       []show.Frontend    `json:"wanted"`
	HealthChecks []show.HealthCheck `json:"healthChecks"`
	// Rendered are the desired rows.
	Rendered []show.Row `json:"rendered"`
	// InVPP are the rows that the renderer last read from VPP or wrote to it, without those of frontends that another service owns.
	InVPP []show.Row `json:"inVPP"`
	// Approximations are those of a plan of this node, without conflicts.
	Approximations []show.Approximation `json:"approximations"`
	// Conflicts are frontends that another service owns.
	Conflicts []Conflict `json:"conflicts"`
	// Problems are the invalid parts of the input.
	Problems []show.Problem `json:"problems"`
}

// EndpointUse is what becomes of an endpoint of a slice on this node.
type EndpointUse struct {
	Slice   string `json:"slice"`
	Address string `json:"address"`
	Node    string `json:"node,omitempty"`
	// Pod is "namespace/name" where the slice says so.
	Pod string `json:"pod,omitempty"`
	// Ready, Serving and Terminating are its conditions.
	Ready       bool `json:"ready"`
	Serving     bool `json:"serving"`
	Terminating bool `json:"terminating"`
	// Frontends counts the frontends that could forward to it, Forwards those that do.
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

// Packet explains what this node does with the first packet of a connection.
type Packet struct {
	// Source is an address, Destination "ip:port/PROTO".
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// Class of the client: pod, node or remote.
	Class string `json:"class"`
	// Action is forward, reject, drop, or none for a packet that is no service traffic.
	Action string `json:"action"`
	// Because are the rules that decided.
	Because []string `json:"because"`
	// Service that has the address, "namespace/name"; "" = none.
	Service string `json:"service"`
	// Frontend that decided; left out if a rule about service addresses did.
	Frontend *show.Frontend `json:"frontend,omitempty"`
	// Backends are the endpoints, one of which gets the packet: those that Kubernetes asks for, then those that only VPP has.
	Backends []PacketBackend `json:"backends"`
	// Others are frontends with this destination that do not decide.
	Others []PacketOther `json:"others"`
	// Wanted and InVPP are the rows of the destination.
	Wanted []show.Row `json:"wanted"`
	InVPP  []show.Row `json:"inVPP"`
	// VPP compares them: as wanted, missing, other than wanted, left over, or no row.
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
	// From is the class of its clients, Action what it would do.
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
	// Next is the cursor of the next page; "" = this is the last one. Total counts the items of all pages. A Backend leaves both out.
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
	// Claim is the state of this node's claim to its ID: pending, held, fenced, or none without a store.
	Claim string `json:"claim"`
	// Reason why the claim is not held, or the latest error of the node store.
	Reason string `json:"reason,omitempty"`
	// Connected is true while the node store answers.
	Connected bool `json:"connected"`
	// Items are ordered by name.
	Items []Node `json:"items"`
	// Next is the cursor of the next page; "" = this is the last one. Total counts the items of all pages. A Backend leaves both out.
	Next  string `json:"next,omitempty"`
	Total int    `json:"total"`
	// Approximations of this node, ordered by renderer and reason.
	Approximations []Approximation `json:"approximations"`
}

// Approximation is what this node does not do exactly as Kubernetes asks, for every service of which Kubernetes asks it.
type Approximation struct {
	Renderer string `json:"renderer"`
	// Services is how many services it concerns.
	Services int `json:"services"`
	// Wanted and Rendered are those of the first service.
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
	// BusiestWorker is the number of sessions of the worker that has the most, Limit the limit of each worker; 0 = unknown.
	BusiestWorker uint64 `json:"busiestWorker"`
	Limit         uint32 `json:"limit"`
	// Alarm is true while the table is nearly full and the agent can neither free sessions nor raise the limit.
	Alarm bool `json:"alarm"`
	// Protocols are the sessions by protocol, as of the last survey; empty = there was none yet.
	Protocols []ProtocolSessions `json:"protocols"`
}

// ProtocolSessions are the sessions of one protocol.
type ProtocolSessions struct {
	// Protocol is tcp, udp, icmp or other.
	Protocol string `json:"protocol"`
	// Sessions occupy a place in the table; Expired are those among them whose timeout has passed.
	Sessions uint64 `json:"sessions"`
	Expired  uint64 `json:"expired"`
}

// ServiceSessions are live NAT sessions of a service.
type ServiceSessions struct {
	// Time is when VPP was asked.
	Time time.Time `json:"time"`
	// Items are at most 1000, the latest active first.
	Items []Session `json:"items"`
	// Incomplete is why there may be more; "" = these are all.
	Incomplete string `json:"incomplete,omitempty"`
}

// Session is one NAT session.
type Session struct {
	// Protocol is TCP, UDP or the number of another one.
	Protocol string `json:"protocol"`
	// Client, Frontend and Backend are "ip:port". ClientAs is what the backend sees as the client where its address is replaced.
	Client   string `json:"client"`
	ClientAs string `json:"clientAs,omitempty"`
	Frontend string `json:"frontend"`
	Backend  string `json:"backend"`
	// IdleSeconds is the time since the last packet. An Expired session only keeps its place in the table.
	IdleSeconds float64 `json:"idleSeconds"`
	Expired     bool    `json:"expired"`
	Packets     uint64  `json:"packets"`
	Bytes       uint64  `json:"bytes"`
}

// Actor is one actor with its numbers.
type Actor struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	// State is the first of these that applies: stopping, quarantined (a service that failed too often), backoff (it failed and is restarted
	// after a delay), suspended (it failed and its supervisor has not decided yet), held (its mailbox is closed, by the verb suspend or while
	// an earlier sibling restarts), starting (not ready yet), running (it handles a message), idle.
	State string `json:"state"`
	// Incarnation counts its starts, from 1.
	Incarnation uint64 `json:"incarnation"`
	// Pending is the number of messages in the mailbox, Received that of all posted ones, Coalesced that of those that replaced a pending one.
	Pending   uint64 `json:"pending"`
	Received  uint64 `json:"received"`
	Coalesced uint64 `json:"coalesced"`
	// Restarts and Failures count since the start of the agent.
	Restarts uint64 `json:"restarts"`
	Failures uint64 `json:"failures"`
	// BusySeconds is the time spent handling messages.
	BusySeconds float64 `json:"busySeconds"`
	// LastMessage is the type of the latest message.
	LastMessage string `json:"lastMessage,omitempty"`
	// Since is the start of the incarnation.
	Since time.Time `json:"since,omitzero"`
	// LastFailure is one line; "" = none.
	LastFailure string `json:"lastFailure,omitempty"`
	// MostPending is the most messages that ever waited, OldestSeconds how long the one that waits longest has waited.
	MostPending   uint64  `json:"mostPending,omitempty"`
	OldestSeconds float64 `json:"oldestSeconds,omitempty"`
	// Handling is the type of the message that the actor is handling, HandlingSeconds since how long; "" = none.
	Handling        string  `json:"handling,omitempty"`
	HandlingSeconds float64 `json:"handlingSeconds,omitempty"`
	// Discarded counts messages that were dropped because the actor stopped or too many waited.
	Discarded uint64 `json:"discarded,omitempty"`
	// Strategy of a supervisor: rest-for-one restarts the children behind the one that failed too, one-for-one only that one; "" = no supervisor.
	Strategy string `json:"strategy,omitempty"`
	// Budget is how many failures of its children within its window a supervisor tolerates before it fails itself, BudgetLeft how many more it
	// tolerates now; -1 = any number.
	Budget     int `json:"budget,omitempty"`
	BudgetLeft int `json:"budgetLeft,omitempty"`
}

// Mailbox is the mailbox of an actor.
type Mailbox struct {
	Path string `json:"path"`
	// Held is true while the mailbox is closed by suspend.
	Held bool `json:"held"`
	// Messages are the pending ones, the next one first, at most MaxLimit; Pending counts all.
	Pending  int       `json:"pending"`
	Messages []Waiting `json:"messages"`
}

// Waiting is one message in a mailbox.
type Waiting struct {
	Type string `json:"type"`
	// Key of coalescing: a new message replaces a pending one of the same key; "" = it is not coalesced.
	Key string `json:"key,omitempty"`
	// AgeSeconds is how long it has waited; with a key, since the first of its values that the actor has not handled.
	AgeSeconds float64 `json:"ageSeconds"`
	// Sender is the actor that expects an answer; "" = none.
	Sender string `json:"sender,omitempty"`
	// Body is the content. It is left out of internal messages, of those above 4 KiB, behind the first 100, and on TCP with api.redactMessages.
	Body json.RawMessage `json:"body,omitempty"`
}

// Traffic is what the actors of one kind have handled and sent since the start of the agent.
type Traffic struct {
	Kind string `json:"kind"`
	// Messages are the types of handled messages, the most frequent first.
	Messages []MessageTraffic `json:"messages"`
	// From and To are the kinds that have sent to actors of this one, and those to which they have, by the number of messages.
	From []KindTraffic `json:"from"`
	To   []KindTraffic `json:"to"`
}

// MessageTraffic is one type of message.
type MessageTraffic struct {
	Type  string `json:"type"`
	Count uint64 `json:"count"`
	// P50Seconds and P99Seconds are times below which 50 and 99 of 100 were handled, rounded up to a power of two of nanoseconds.
	P50Seconds float64 `json:"p50Seconds"`
	P99Seconds float64 `json:"p99Seconds"`
}

// KindTraffic is the number of messages from or to a kind of actors.
type KindTraffic struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
}

// DeadLetters are messages that were not delivered.
type DeadLetters struct {
	// Count is their number since the start of the agent, Items the latest 64, the newest first.
	Count uint64       `json:"count"`
	Items []DeadLetter `json:"items"`
}

// DeadLetter is one of them.
type DeadLetter struct {
	Time time.Time `json:"time"`
	// To is the path of the actor it was sent to, Sender that of the actor that expects an answer; "" = none.
	To     string `json:"to"`
	Sender string `json:"sender,omitempty"`
	Type   string `json:"type"`
	// Reason is why: no such actor, actor has stopped, discarded on stop, or too many were waiting.
	Reason string `json:"reason"`
}

// Failure is one failure of an actor.
type Failure struct {
	Time        time.Time `json:"time"`
	Incarnation uint64    `json:"incarnation"`
	// Reason is the panic or error.
	Reason string `json:"reason"`
	// Message is the type of the message that the actor was handling.
	Message string `json:"message,omitempty"`
	// Decision of the supervisor: restart, quarantine, escalate.
	Decision string `json:"decision,omitempty"`
	Stack    string `json:"stack,omitempty"`
}

// EventQuery selects events of the journal.
type EventQuery struct {
	// Before selects events with a smaller sequence number; 0 = from the newest. After selects those with a larger one.
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
	// Kind is service, render, command, audit, resync, healing, link, interfaces, node, source, readiness or fault.
	Kind  string `json:"kind"`
	Actor string `json:"actor"`
	// Object of the event: a service, an interface, a node; "" = none.
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
	// Cause is the ID of the change or command that the event is an effect of; all effects of one have the same. 0 = none.
	Cause uint64 `json:"cause,omitempty"`
	// Method is update, upstream-resync, downstream-resync or full-resync; "" = the event is not a transaction.
	Method string `json:"method,omitempty"`
	// Operations are the planned ones, on VPP or as steps of a command, each as one line.
	Operations []string `json:"operations,omitempty"`
	// Executed are those that were executed, if one has failed.
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
	// Method is the scope: "upstream" reads the desired state again, "downstream" VPP, "full" or "" both.
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
	// Time is when the reading of VPP began. On TCP it may be some seconds ago, because clients share a reading; the control socket reads VPP for
	// each request. A Backend leaves it out.
	Time time.Time `json:"time,omitzero"`
	// Renderers are ordered by name.
	Renderers []RendererDiff `json:"renderers"`
}

// RendererDiff is the part of one renderer.
type RendererDiff struct {
	Renderer string `json:"renderer"`
	// Operations would bring VPP to the desired state, each as one line; empty = it is in that state.
	Operations []string `json:"operations"`
	// Error is the reason why VPP could not be read; "" = none.
	Error string `json:"error,omitempty"`
}

// TreeNode is an actor with its descendants.
type TreeNode struct {
	Actor
	// Name is the last part of the path.
	Name string `json:"name"`
	// Below counts all descendants, with those that Children leaves out.
	Below    int         `json:"below"`
	Children []*TreeNode `json:"children,omitempty"`
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
