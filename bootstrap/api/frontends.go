package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
)

// Frontend is one frontend that Kubernetes requires on this node (messages.Frontend): how it treats
// packets of a class of clients.
type Frontend struct {
	// Frontend is "ip:port/PROTO", IPv6 in brackets.
	Frontend string `json:"frontend" column:"FRONTEND" link:"/packet?destination="`
	// Service is "namespace/name".
	Service string `json:"service" column:"SERVICE,wide"`
	// Port is the name of the service port; "" if it has none.
	Port string `json:"port" column:"PORT,wide"`
	// Scope is cluster, external or nodeport.
	Scope string `json:"scope"`
	// Kind is clusterIP, externalIP, loadBalancerIP or nodePort.
	Kind string `json:"kind" column:"KIND"`
	// From is the class of clients: any, local or remote.
	From string `json:"from" column:"FROM"`
	// Action is forward, reject or drop.
	Action string `json:"action" column:"ACTION"`
	// Endpoints are "ip:port", ordered; empty unless Action is forward.
	Endpoints []string `json:"endpoints" column:"ENDPOINTS"`
	// AffinitySeconds is the timeout of ClientIP affinity; 0 = none.
	AffinitySeconds uint32 `json:"affinitySeconds" column:"AFFINITY,wide"`
	// MasqueradeFrom are the classes of clients that get another source address: pod, node,
	// remote.
	MasqueradeFrom []string `json:"masqueradeFrom" column:"MASQUERADE,wide"`
	// AllowSources are the networks of allowed clients; empty = all.
	AllowSources []string `json:"allowSources" column:"SOURCES,wide"`
}

// HealthCheck is a health-check node port (messages.HealthCheck).
type HealthCheck struct {
	Service string `json:"service" column:"SERVICE"`
	Port    uint32 `json:"port" column:"PORT"`
	// LocalEndpoints counts the ready endpoints on this node.
	LocalEndpoints uint32 `json:"localEndpoints" column:"LOCAL ENDPOINTS"`
	// Status is the answer of the port while the agent is healthy: 200 or 503.
	Status int `json:"status" column:"STATUS"`
}

// Local is one backend of a row with its weight.
type Local struct {
	// Address is "ip:port".
	Address string `json:"address"`
	Weight  uint32 `json:"weight"`
	// Table is the table (VRF) of VPP in which the backend is reached; left out where it is 0.
	Table uint32 `json:"table,omitempty"`
}

// Text is the address with the table where it is not 0.
func (l Local) Text() string {
	if l.Table == 0 {
		return l.Address
	}
	return fmt.Sprintf("%s (table %d)", l.Address, l.Table)
}

// Row is one entry of a renderer in VPP (messages.RowState).
type Row struct {
	// Renderer is the name of the renderer, for example "nat44".
	Renderer string `json:"renderer"`
	// VIP is "ip:port/PROTO".
	VIP string `json:"vip"`
	// Service is "namespace/name".
	Service string   `json:"service"`
	Flags   []string `json:"flags"`
	Locals  []Local  `json:"locals"`
	// AffinitySeconds is VPP's affinity of the row; 0 = none.
	AffinitySeconds uint32 `json:"affinitySeconds"`
}

// Standings of a row: the row in VPP compared with the desired row.
const (
	AsWanted        = "as wanted"
	Missing         = "missing"
	OtherThanWanted = "other than wanted"
	LeftOver        = "left over"
	NoRow           = "no row"
	OwnedByAnother  = "owned by another"
)

// Standing compares the desired row of a frontend with the row in VPP, each nil if there is none;
// taken is true if another owner has the address.
func Standing(wanted, held *Row, taken bool) string {
	switch {
	case held == nil && taken:
		return OwnedByAnother
	case wanted == nil && held == nil:
		return NoRow
	case wanted == nil:
		return LeftOver
	case held == nil:
		return Missing
	case slices.Equal(wanted.Locals, held.Locals) && slices.Equal(wanted.Flags, held.Flags) && wanted.AffinitySeconds == held.AffinitySeconds:
		return AsWanted
	default:
		return OtherThanWanted
	}
}

// FrontendApproximation is a requirement of Kubernetes that a renderer expresses only nearly
// (messages.Approximation), or not at all (messages.RenderAck.unrendered).
type FrontendApproximation struct {
	Frontend string `json:"frontend" column:"FRONTEND"`
	Service  string `json:"service" column:"SERVICE"`
	Wanted   string `json:"wanted" column:"WANTED"`
	Rendered string `json:"rendered" column:"RENDERED"`
	Why      string `json:"why" column:"WHY"`
}

// Problem is an invalid part of the input (messages.ObjectError).
type Problem struct {
	Source  string `json:"source,omitempty" column:"SOURCE"`
	Kind    string `json:"kind,omitempty" column:"KIND"`
	Object  string `json:"object,omitempty" column:"OBJECT"`
	Field   string `json:"field,omitempty" column:"FIELD"`
	Message string `json:"message" column:"MESSAGE" tone:"bad"`
}

// String is the problem as one line, "source: kind object: field: message" without empty parts.
func (p Problem) String() string {
	parts := []string{p.Source, strings.TrimSpace(p.Kind + " " + p.Object), p.Field, p.Message}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// converted are the results of a function for each value; never nil, so that JSON has an array.
func converted[A, B any](from []A, convert func(A) B) []B {
	out := make([]B, len(from))
	for i, a := range from {
		out[i] = convert(a)
	}
	return out
}

// Frontends returns the frontends of a view.
func Frontends(view *messages.ServiceView) []Frontend {
	return converted(view.GetFrontends(), func(f *messages.Frontend) Frontend {
		return Frontend{
			Frontend: service.FrontendText(f), Service: view.GetKey(), Port: f.GetPortName(),
			Scope: service.Word(f.GetScope()), Kind: service.KindWord(f.GetKind()),
			From: service.Word(f.GetFrom()), Action: service.Word(f.GetAction()),
			Endpoints: converted(f.GetBackends(), service.BackendText), AffinitySeconds: f.GetAffinitySeconds(),
			MasqueradeFrom: append([]string{}, f.GetMasqueradeFrom()...), AllowSources: append([]string{}, f.GetAllowSources()...),
		}
	})
}

// HealthChecks returns the health-check node ports of a view for a healthy agent. A service of two
// families has one for each; equal ones are joined.
func HealthChecks(view *messages.ServiceView) []HealthCheck {
	return slices.Compact(converted(view.GetHealthChecks(), func(check *messages.HealthCheck) HealthCheck {
		return HealthCheck{
			Service: view.GetKey(), Port: check.GetPort(), LocalEndpoints: check.GetLocalEndpoints(),
			Status: service.HealthAnswer(view.GetKey(), check, true).Status,
		}
	}))
}

// Rows returns the rows of one service.
func Rows(key string, states []*messages.RowState) []Row {
	return converted(states, func(s *messages.RowState) Row {
		return Row{
			Renderer: s.GetRenderer(), VIP: s.GetVip(), Service: key, Flags: append([]string{}, s.GetFlags()...),
			Locals: converted(s.GetLocals(), func(l *messages.RowLocal) Local {
				return Local{Address: l.GetAddress(), Weight: l.GetWeight(), Table: l.GetTable()}
			}),
			AffinitySeconds: s.GetAffinitySeconds(),
		}
	})
}

// Approximations returns the public form of approximations.
func Approximations(from []*messages.Approximation) []FrontendApproximation {
	return converted(from, func(a *messages.Approximation) FrontendApproximation {
		return FrontendApproximation{a.GetFrontend(), a.GetService(), a.GetWanted(), a.GetRendered(), a.GetWhy()}
	})
}

// Unrendered returns parts of services that VPP cannot express, each as an approximation. It
// belongs to the frontend that its text names; a text without a frontend is about the service.
func Unrendered(frontends []Frontend, parts []*messages.ObjectError) []FrontendApproximation {
	return converted(parts, func(e *messages.ObjectError) FrontendApproximation {
		wanted := "served"
		if e.GetSource() == acl.Renderer {
			wanted = "guarded"
		}
		a := FrontendApproximation{Service: e.GetObject(), Wanted: wanted, Rendered: "not " + wanted, Why: e.GetMessage()}
		for _, f := range frontends {
			if f.Service == a.Service && strings.Contains(" "+e.GetMessage()+" ", " "+f.Frontend+" ") {
				a.Frontend, a.Wanted = f.Frontend, f.Action
				break
			}
		}
		return a
	})
}

// Problems returns the public form of input errors.
func Problems(from []*messages.ObjectError) []Problem {
	return converted(from, func(e *messages.ObjectError) Problem {
		return Problem{e.GetSource(), e.GetKind(), e.GetObject(), e.GetField(), e.GetMessage()}
	})
}

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
