package api

import (
	"encoding/json"
	"fmt"
	"time"
)

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
	// ServiceQuarantined means that its actor failed too often and is stopped for a while; its
	// last good rows stay.
	ServiceQuarantined ServiceState = "quarantined"
	// ServicePartly means that VPP serves some frontends and cannot serve others, for example
	// of SCTP.
	ServicePartly ServiceState = "partly"
	// ServiceNotServed means that no frontend is served: VPP cannot serve any of them, or the
	// service has none, for example because it is headless.
	ServiceNotServed ServiceState = "not-served"
)

// Served says what the users of a service get at this node.
type Served string

// Values of Served.
const (
	ServedAll     Served = "served"
	ServedPartly  Served = "partly"
	ServedWaiting Served = "waiting"
	ServedRefused Served = "refused"
	ServedNone    Served = "not-served"
)

// ServedWords are the values of Served, the worst first.
func ServedWords() []Served {
	return []Served{ServedNone, ServedRefused, ServedWaiting, ServedPartly, ServedAll}
}

// ServiceStates are the states of a service, the worst first.
func ServiceStates() []ServiceState {
	return []ServiceState{ServiceQuarantined, ServiceFailed, ServicePending, ServiceNotServed, ServicePartly, ServiceInSync}
}

// Tone says how good a state of a service, an actor, a row or a fault is: good, warn or bad; "" =
// the word is no state.
func Tone(word string) string {
	switch word {
	case "idle", "running", string(ServiceInSync), string(ServedAll), AsWanted:
		return "good"
	case "starting", "held", "backoff", "suspended", string(ServicePending), string(ServicePartly), string(ServiceNotServed), string(ServedWaiting):
		return "warn"
	case string(ServiceFailed), string(ServiceQuarantined), string(ServedRefused), Missing, OtherThanWanted, LeftOver, "stopping", "not-well", "violated":
		return "bad"
	}
	return ""
}

// Texts are words as texts.
func Texts[S ~string](words []S) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// Why explains the value in words.
func (s Served) Why() string {
	return map[Served]string{
		ServedAll:     "every frontend leads to ready endpoints",
		ServedPartly:  "some frontends or endpoints are served, others are not",
		ServedWaiting: "VPP does not hold it yet",
		ServedRefused: "no endpoint is ready, so clients get an error",
		ServedNone:    "no frontend is served: the service has none, for example because it is headless, or VPP cannot serve it or reach its endpoints",
	}[s]
}

// Service is the summary of a service.
type Service struct {
	// Key is "namespace/name".
	Key string `json:"service" column:"SERVICE" link:"/services/"`
	// ClusterIP is its first cluster IP; "" = none.
	ClusterIP string       `json:"clusterIP,omitempty" column:"CLUSTER-IP"`
	Served    Served       `json:"served" column:"SERVED"`
	State     ServiceState `json:"state" column:"STATE"`
	// Generation of its latest input.
	Generation uint64 `json:"generation"`
	// Frontends, Endpoints and Rows count its desired frontends, their distinct endpoints, and
	// its rows in VPP.
	Frontends int `json:"frontends" column:"FRONTENDS,wide"`
	Endpoints int `json:"endpoints" column:"ENDPOINTS"`
	Rows      int `json:"rows" column:"ROWS,wide"`
	// Changed is the time of the latest change.
	Changed time.Time `json:"changed,omitzero" column:"CHANGED,wide,ago"`
	// Error is the latest error; "" = none.
	Error string `json:"error,omitempty" column:"ERROR" tone:"bad"`
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
	// Uses are the endpoints of its slices, at most MaxLimit. Endpoints with a fault come first,
	// then endpoints that are not used everywhere.
	Uses []EndpointUse `json:"uses"`
	// Wanted are the frontends that Kubernetes requires.
	Wanted       []Frontend    `json:"wanted"`
	HealthChecks []HealthCheck `json:"healthChecks"`
	// Rendered are the desired rows.
	Rendered []Row `json:"rendered"`
	// InVPP are the rows that the renderers read from VPP at Read or wrote to it since, except
	// rows of frontends that another service owns. Diff reads VPP now.
	InVPP []Row     `json:"inVPP"`
	Read  time.Time `json:"read,omitzero"`
	// Draining are the endpoints that keep their connections through VPP and get no new
	// connections, ordered by address.
	Draining []DrainingEndpoint `json:"draining"`
	// Approximations are the approximations of a plan of this node, without conflicts.
	Approximations []FrontendApproximation `json:"approximations"`
	// Conflicts are frontends that another service owns.
	Conflicts []Conflict `json:"conflicts"`
	// Problems are the invalid parts of the input.
	Problems []Problem `json:"problems"`
}

// DrainingEndpoint is an endpoint that keeps its connections and gets no new connections.
type DrainingEndpoint struct {
	// Address is "ip:port".
	Address string `json:"address"`
	// Since is the time at which it began to drain, not before the start of the agent. Left out
	// for a moment after that.
	Since time.Time `json:"since,omitzero"`
	// Connections counts the connections in VPP through all frontends of the service; left out
	// until VPP has been asked.
	Connections *int `json:"connections,omitempty"`
	// Kept is why VPP keeps it although it has left the slices; "" = it is in the slices.
	Kept string `json:"kept,omitempty"`
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
	if d.Kept != "" {
		text += "; kept: " + d.Kept
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
	// Fault is the reason why connections to it are lost; "" = none is known.
	Fault string `json:"fault,omitempty"`
}

// Conflict is a frontend that another service owns.
type Conflict struct {
	Frontend string `json:"frontend" column:"FRONTEND"`
	Owner    string `json:"owner" column:"OWNER" tone:"bad"`
}
