package show

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
	Frontend string `json:"frontend"`
	// Service is "namespace/name".
	Service string `json:"service"`
	// Port is the name of the service port; "" if it has none.
	Port string `json:"port"`
	// Scope is cluster, external or nodeport.
	Scope string `json:"scope"`
	// Kind is clusterIP, externalIP, loadBalancerIP or nodePort.
	Kind string `json:"kind"`
	// From is the class of clients: any, local or remote.
	From string `json:"from"`
	// Action is forward, reject or drop.
	Action string `json:"action"`
	// Endpoints are "ip:port", ordered; empty unless Action is forward.
	Endpoints []string `json:"endpoints"`
	// AffinitySeconds is the timeout of ClientIP affinity; 0 = none.
	AffinitySeconds uint32 `json:"affinitySeconds"`
	// MasqueradeFrom are the classes of clients that get another source address: pod, node,
	// remote.
	MasqueradeFrom []string `json:"masqueradeFrom"`
	// AllowSources are the networks of allowed clients; empty = all.
	AllowSources []string `json:"allowSources"`
}

// HealthCheck is a health-check node port (messages.HealthCheck).
type HealthCheck struct {
	Service string `json:"service"`
	Port    uint32 `json:"port"`
	// LocalEndpoints counts the ready endpoints on this node.
	LocalEndpoints uint32 `json:"localEndpoints"`
	// Status is the answer of the port while the agent is healthy: 200 or 503.
	Status int `json:"status"`
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

// Find returns the row of a renderer at an address; nil = there is none.
func Find(rows []Row, renderer, vip string) *Row {
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.Renderer == renderer && r.VIP == vip }); i >= 0 {
		return &rows[i]
	}
	return nil
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

// Approximation is a requirement of Kubernetes that a renderer expresses only nearly
// (messages.Approximation), or not at all (messages.RenderAck.unrendered).
type Approximation struct {
	Service  string `json:"service"`
	Frontend string `json:"frontend"`
	Wanted   string `json:"wanted"`
	Rendered string `json:"rendered"`
	Why      string `json:"why"`
}

// Problem is an invalid part of the input (messages.ObjectError).
type Problem struct {
	Source  string `json:"source,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Object  string `json:"object,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String is the problem as one line, "source: kind object: field: message" without empty parts.
func (p Problem) String() string {
	parts := []string{p.Source, strings.TrimSpace(p.Kind + " " + p.Object), p.Field, p.Message}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Frontends returns the frontends of a view.
func Frontends(view *messages.ServiceView) []Frontend {
	out := make([]Frontend, 0, len(view.GetFrontends()))
	for _, f := range view.GetFrontends() {
		endpoints := make([]string, len(f.GetBackends()))
		for i, b := range f.GetBackends() {
			endpoints[i] = service.BackendText(b)
		}
		out = append(out, Frontend{
			Frontend: service.FrontendText(f), Service: view.GetKey(), Port: f.GetPortName(),
			Scope: service.ScopeWord(f.GetScope()), Kind: service.KindWord(f.GetKind()),
			From: service.FromWord(f.GetFrom()), Action: service.ActionWord(f.GetAction()),
			Endpoints: endpoints, AffinitySeconds: f.GetAffinitySeconds(),
			MasqueradeFrom: append([]string{}, f.GetMasqueradeFrom()...), AllowSources: append([]string{}, f.GetAllowSources()...),
		})
	}
	return out
}

// HealthChecks returns the health-check node ports of a view for a healthy agent. A service of two
// families has one for each; equal ones are joined.
func HealthChecks(view *messages.ServiceView) []HealthCheck {
	out := make([]HealthCheck, 0, len(view.GetHealthChecks()))
	for _, check := range view.GetHealthChecks() {
		one := HealthCheck{
			Service: view.GetKey(), Port: check.GetPort(), LocalEndpoints: check.GetLocalEndpoints(),
			Status: service.HealthAnswer(view.GetKey(), check, true).Status,
		}
		if len(out) == 0 || out[len(out)-1] != one {
			out = append(out, one)
		}
	}
	return out
}

// Rows returns the rows of one service.
func Rows(key string, states []*messages.RowState) []Row {
	out := make([]Row, 0, len(states))
	for _, s := range states {
		locals := make([]Local, len(s.GetLocals()))
		for i, l := range s.GetLocals() {
			locals[i] = Local{Address: l.GetAddress(), Weight: l.GetWeight(), Table: l.GetTable()}
		}
		out = append(out, Row{
			Renderer: s.GetRenderer(), VIP: s.GetVip(), Service: key, Flags: append([]string{}, s.GetFlags()...), Locals: locals,
			AffinitySeconds: s.GetAffinitySeconds(),
		})
	}
	return out
}

// Approximations returns the public form of approximations.
func Approximations(from []*messages.Approximation) []Approximation {
	out := make([]Approximation, 0, len(from))
	for _, a := range from {
		out = append(out, Approximation{
			Service: a.GetService(), Frontend: a.GetFrontend(), Wanted: a.GetWanted(), Rendered: a.GetRendered(), Why: a.GetWhy(),
		})
	}
	return out
}

// Unrendered returns parts of services that VPP cannot express, each as an approximation. It
// belongs to the frontend that its text names; a text without a frontend is about the service.
func Unrendered(frontends []Frontend, parts []*messages.ObjectError) []Approximation {
	out := make([]Approximation, 0, len(parts))
	for _, e := range parts {
		wanted := "served"
		if e.GetSource() == acl.Renderer {
			wanted = "guarded"
		}
		a := Approximation{Service: e.GetObject(), Wanted: wanted, Rendered: "not " + wanted, Why: e.GetMessage()}
		for _, f := range frontends {
			if f.Service == a.Service && strings.Contains(" "+e.GetMessage()+" ", " "+f.Frontend+" ") {
				a.Frontend, a.Wanted = f.Frontend, f.Action
				break
			}
		}
		out = append(out, a)
	}
	return out
}

// Problems returns the public form of input errors.
func Problems(from []*messages.ObjectError) []Problem {
	out := make([]Problem, 0, len(from))
	for _, e := range from {
		out = append(out, Problem{
			Source: e.GetSource(), Kind: e.GetKind(), Object: e.GetObject(), Field: e.GetField(), Message: e.GetMessage(),
		})
	}
	return out
}

// Age is an age for people.
func Age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}
