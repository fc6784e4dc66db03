package api

import (
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/show"
)

// Readiness says whether the node serves what it should, part by part.
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
	// Reason why it is not OK, one line; with OK, a warning or nothing.
	Reason string `json:"reason,omitempty"`
	// Epoch of a renderer; 0 for others.
	Epoch uint64 `json:"epoch,omitempty"`
}

// NodeHealth is what /healthz says, in the words of kube-proxy.
type NodeHealth struct {
	// LastUpdated is when VPP was last known to hold what it should.
	LastUpdated time.Time `json:"lastUpdated"`
	// CurrentTime is when this was asked.
	CurrentTime time.Time `json:"currentTime"`
	// Eligible is false when the node is about to leave the cluster: load balancers should look for another one.
	Eligible bool `json:"nodeEligible"`
	// Healthy is true when no change has waited too long to reach VPP.
	Healthy bool `json:"healthy"`
}

// ServiceState is the state of a service in one word.
type ServiceState string

// States of a service.
const (
	// ServiceInSync means that VPP holds every row of it.
	ServiceInSync ServiceState = "in-sync"
	// ServicePending means that a change is on its way.
	ServicePending ServiceState = "pending"
	// ServiceFailed means that VPP refused something; it is tried again.
	ServiceFailed ServiceState = "failed"
	// ServiceQuarantined means that its actor failed again and again and was put aside; its last good rows stay.
	ServiceQuarantined ServiceState = "quarantined"
	// ServiceNotServed means that there is nothing to serve, for example because it is headless.
	ServiceNotServed ServiceState = "not-served"
)

// Service is one line about a service.
type Service struct {
	// Key is "namespace/name".
	Key   string       `json:"service"`
	State ServiceState `json:"state"`
	// Generation of its last input.
	Generation uint64 `json:"generation"`
	// Frontends, Endpoints and Rows count what is wanted, the distinct endpoints of it, and the rows in VPP.
	Frontends int `json:"frontends"`
	Endpoints int `json:"endpoints"`
	Rows      int `json:"rows"`
	// Changed is when this last changed.
	Changed time.Time `json:"changed,omitzero"`
	// Error is the last one; "" = none.
	Error string `json:"error,omitempty"`
}

// ServiceDetail is everything about a service: what Kubernetes wants, what the renderers made of it, what VPP holds.
type ServiceDetail struct {
	Service
	// NotServed is why there are no frontends; "" = there may be some.
	NotServed string `json:"notServed,omitempty"`
	// Wanted is what Kubernetes asks for.
	Wanted       []show.Frontend    `json:"wanted"`
	HealthChecks []show.HealthCheck `json:"healthChecks"`
	// Rendered are the rows that VPP should hold.
	Rendered []show.Row `json:"rendered"`
	// InVPP are the rows that VPP was last seen or made to hold; those under a frontend that somebody else owns are not among them.
	InVPP []show.Row `json:"inVPP"`
	// Approximations are the same as in a plan of this node, but for the conflicts.
	Approximations []show.Approximation `json:"approximations"`
	// Conflicts are frontends that another service owns.
	Conflicts []Conflict `json:"conflicts"`
	// Problems are parts of the input that could not be used.
	Problems []show.Problem `json:"problems"`
}

// Conflict is a frontend that another service owns.
type Conflict struct {
	Frontend string `json:"frontend"`
	Owner    string `json:"owner"`
}

// Interfaces are the interfaces of VPP and what they are for.
type Interfaces struct {
	// Uplink is the name of the interface with the default route; "" = none.
	Uplink string `json:"uplink,omitempty"`
	// NodeAddresses are the addresses of the uplink, "ip/len".
	NodeAddresses []string `json:"nodeAddresses"`
	// Items are ordered by index.
	Items []Interface `json:"items"`
}

// Interface is one interface of VPP.
type Interface struct {
	Index uint32 `json:"index"`
	Name  string `json:"name"`
	// Kind is pod, uplink, internal or other.
	Kind string `json:"kind"`
	// Up is true when the interface is up, by its administrator and by its link.
	Up bool `json:"up"`
	// Addresses are "ip/len".
	Addresses []string `json:"addresses"`
	// Pods behind it, "namespace/name".
	Pods []string `json:"pods"`
	// Frontend: clients may enter here. Backend: a local endpoint is behind it.
	Frontend bool `json:"frontend"`
	Backend  bool `json:"backend"`
}

// Nodes is what the nodes agreed on.
type Nodes struct {
	// Self is the name of this node.
	Self string `json:"self"`
	// Claim is the state of this node's claim to its ID: pending, held, fenced, or none without an etcd.
	Claim string `json:"claim"`
	// Reason why the claim is not held, or the last error of etcd.
	Reason string `json:"reason,omitempty"`
	// Connected is true while etcd answers.
	Connected bool `json:"connected"`
	// Items are ordered by name.
	Items []Node `json:"items"`
}

// Node is one node as its peers see it.
type Node struct {
	Name string `json:"name"`
	// ID is 0 while it has none.
	ID uint32 `json:"id"`
	// VPPAddresses are "ip/len".
	VPPAddresses        []string `json:"vppAddresses"`
	ManagementAddresses []string `json:"managementAddresses"`
	PodCIDRs            []string `json:"podCIDRs"`
}

// Actor is one actor with its numbers.
type Actor struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	// State is the first of these that applies: stopping (it was told to), quarantined (a service that failed too often is put aside),
	// backoff (it failed and is restarted after a delay), suspended (it failed and its supervisor has not decided yet), held (its mailbox is
	// closed, by the verb suspend or while an earlier sibling restarts), starting (not ready yet), running (it handles a message), idle.
	State string `json:"state"`
	// Incarnation counts its lives, from 1.
	Incarnation uint64 `json:"incarnation"`
	// Pending is the number of messages that wait, Received of those it was given, Coalesced of those that replaced a waiting one.
	Pending   uint64 `json:"pending"`
	Received  uint64 `json:"received"`
	Coalesced uint64 `json:"coalesced"`
	// Restarts and Failures count since the agent started.
	Restarts uint64 `json:"restarts"`
	Failures uint64 `json:"failures"`
	// BusySeconds is the time it spent with messages.
	BusySeconds float64 `json:"busySeconds"`
	// LastMessage is the type of the last one.
	LastMessage string `json:"lastMessage,omitempty"`
	// Since is when the incarnation started.
	Since time.Time `json:"since,omitzero"`
	// LastFailure is one line; "" = none.
	LastFailure string `json:"lastFailure,omitempty"`
}

// Mailbox is what waits in the mailbox of an actor.
type Mailbox struct {
	Path string `json:"path"`
	// Held is true while the mailbox is closed by suspend.
	Held bool `json:"held"`
	// Messages wait, the next one first; Pending counts them even where the list is cut.
	Pending  int       `json:"pending"`
	Messages []Waiting `json:"messages"`
}

// Waiting is one message in a mailbox.
type Waiting struct {
	Type string `json:"type"`
	// Key is what it is the latest value of; "" = it is not coalesced.
	Key string `json:"key,omitempty"`
}

// Failure is one failure of an actor.
type Failure struct {
	Time        time.Time `json:"time"`
	Incarnation uint64    `json:"incarnation"`
	// Reason is the panic or error.
	Reason string `json:"reason"`
	// Message is the type of the message it happened with.
	Message string `json:"message,omitempty"`
	// Decision is what the supervisor did: restart, quarantine, escalate.
	Decision string `json:"decision,omitempty"`
	Stack    string `json:"stack,omitempty"`
}

// EventQuery selects events of the journal.
type EventQuery struct {
	// Before selects events with a smaller sequence number; 0 = from the newest. After selects those with a larger one.
	Before, After uint64
	// Cause selects what followed from one change or command; 0 = all.
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
	// Kind is service, render, command, resync, healing, link, interfaces, node, source, readiness or fault.
	Kind  string `json:"kind"`
	Actor string `json:"actor"`
	// Object it is about: a service, an interface, a node; "" = none.
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
	// Cause is the id of what it follows from, a change of the input or a command; everything that follows from one has the same. 0 = none.
	Cause uint64 `json:"cause,omitempty"`
	// Method is update, upstream-resync, downstream-resync or full-resync; "" = none of them.
	Method string `json:"method,omitempty"`
	// Operations that were planned, on VPP or as steps of a command, each as one line.
	Operations []string `json:"operations,omitempty"`
	// Executed are those that were carried out, where something failed.
	Executed []string `json:"executed,omitempty"`
	// Error is "" when it went well.
	Error string `json:"error,omitempty"`
}

// Resync says how far the renderers are.
type Resync struct {
	// Renderers are ordered by name.
	Renderers []RendererSync `json:"renderers"`
	// Healing says how often each rung of the ladder was taken, by part; both are ordered.
	Healing []HealingCount `json:"healing"`
	// Ill are the parts about which something is being done, ordered by name.
	Ill []IllPart `json:"ill"`
}

// HealingCount says how often something was done about a part.
type HealingCount struct {
	Part string `json:"part"`
	// Rung is key, object, downstream, full, subtree or exit.
	Rung  string `json:"rung"`
	Count uint64 `json:"count"`
}

// IllPart is a part that is not well for a reason that can be mended from inside.
type IllPart struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
	// Since is when it began, Next when something is done, or done again.
	Since time.Time `json:"since"`
	Next  time.Time `json:"next"`
	// Rung was taken last; "none" = none yet.
	Rung string `json:"rung"`
}

// RendererSync is the state of one renderer.
type RendererSync struct {
	Renderer string `json:"renderer"`
	// Epoch counts its starts over from a read of VPP.
	Epoch uint64 `json:"epoch"`
	// InSync is true when VPP holds what it should.
	InSync bool   `json:"inSync"`
	Reason string `json:"reason,omitempty"`
	// Differences found and operations made by the last comparison with VPP.
	Differences uint32 `json:"differences"`
	Operations  uint32 `json:"operations"`
	Error       string `json:"error,omitempty"`
}

// ResyncRequest is the body of POST /api/v1/resync.
type ResyncRequest struct {
	// Reason goes into the journal.
	Reason string `json:"reason"`
	// Method says how much is read again: "upstream" what is wanted, "downstream" what VPP holds, "full" both, as "" does.
	Method ResyncMethod `json:"method"`
}

// ResyncMethod says how much is read again.
type ResyncMethod string

// Methods of a ResyncRequest.
const (
	ResyncFull       ResyncMethod = "full"
	ResyncUpstream   ResyncMethod = "upstream"
	ResyncDownstream ResyncMethod = "downstream"
)

// Diff is what differs between VPP and what it should hold.
type Diff struct {
	// Renderers are ordered by name.
	Renderers []RendererDiff `json:"renderers"`
}

// RendererDiff is the part of one renderer.
type RendererDiff struct {
	Renderer string `json:"renderer"`
	// Operations would make VPP equal to what it should hold, each as one line; empty = it is.
	Operations []string `json:"operations"`
	// Error is why VPP could not be read; "" = it was.
	Error string `json:"error,omitempty"`
}

// TreeNode is an actor with those below it.
type TreeNode struct {
	Actor
	// Name is the last part of the path.
	Name string `json:"name"`
	// Below counts all actors below, also where Children were left out.
	Below    int         `json:"below"`
	Children []*TreeNode `json:"children,omitempty"`
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the next page; "" = that was all.
	Next string `json:"next,omitempty"`
	// Total counts the items of all pages.
	Total int `json:"total"`
}

// Error is the body of every answer that is none.
type Error struct {
	Error string `json:"error"`
}

// PodInterface is the interface of a pod in VPP, as it was told.
type PodInterface struct {
	// Pod is "namespace/name".
	Pod string `json:"pod"`
	// Interface is its name in VPP; "" = it has none.
	Interface string `json:"interface"`
	// Cause is the id under which the journal has the command and what followed from it.
	Cause uint64 `json:"cause"`
}

// PodInterfaceRequest is the body of PUT /api/v1/pods/{namespace}/{name}/interface.
type PodInterfaceRequest struct {
	// Interface is the name of an interface in VPP, for example "tap3".
	Interface string `json:"interface"`
}
