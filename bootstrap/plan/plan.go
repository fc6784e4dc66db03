package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// ErrUnknownNode means that the objects have no Node of the given name.
var ErrUnknownNode = errors.New("unknown node")

// Options are the inputs of a plan besides the objects.
type Options struct {
	// Node is the name of the node to plan for.
	Node string
	// Serving are the settings of service handling.
	Serving service.Config
	// NAT44 are the settings of the renderer. An invalid TwiceNAT is derived from the node, as
	// in a running agent. Guarded is ignored: the plan is for a VPP with access lists.
	NAT44 nat44.Config
	// CNAT are the settings of the cnat renderer; nil = it is not used.
	CNAT *cnat.Config
}

// Report is the plan of a node. Lists are never nil; frontends and rows are ordered by service,
// then in the order of their packages.
type Report struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Services has a line for each service of the input, also those without frontends.
	Services []Service `json:"services"`
	// Frontends are the frontends that Kubernetes requires.
	Frontends []api.Frontend `json:"frontends"`
	// HealthChecks are the health-check node ports.
	HealthChecks []api.HealthCheck `json:"healthChecks"`
	// Rows are the rows that the renderer would install.
	Rows []api.Row `json:"rows"`
	// Beside are the routes and the rules of access lists.
	Beside []Beside `json:"beside"`
	// Approximations are the differences between rows and frontends.
	Approximations []api.FrontendApproximation `json:"approximations"`
	// Problems are the parts of the input that cannot be used; Build leaves them empty.
	Problems []api.Problem `json:"problems,omitempty"`
}

// Build plans one node. It returns problems of services as well; Read returns the problems of
// objects. The error is ErrUnknownNode with the names of the existing nodes.
func Build(objects *normalize.Objects, opts Options) (*Report, []*messages.ObjectError, error) {
	snapshot := kube.Collect(opts.Node, objects.Select(opts.Node), nil)
	self := snapshot.GetNode().GetSelf()
	if self == nil {
		return nil, nil, unknownNode(opts.Node, snapshot.GetNode().GetNodes())
	}
	r := &Report{
		Node: opts.Node, Services: []Service{}, Frontends: []api.Frontend{}, HealthChecks: []api.HealthCheck{}, Rows: []api.Row{}, Approximations: []api.FrontendApproximation{},
	}
	opts.Serving.Costs = actors.Costs(opts.CNAT)
	node := desired.NodeContext(self, nil)
	views := service.ResolveAll(snapshot.GetServices(), node, opts.Serving)
	var problems []*messages.ObjectError
	for _, view := range views {
		r.Frontends = append(r.Frontends, api.Frontends(view)...)
		r.HealthChecks = append(r.HealthChecks, api.HealthChecks(view)...)
		problems = append(problems, view.GetErrors()...)
	}
	acks := actors.DryRun(&actors.Deps{NAT44: opts.NAT44, CNAT: opts.CNAT, Serving: opts.Serving}, node, snapshot.GetNode(), views)
	r.Beside = beside(snapshot.GetNode(), views, opts)
	for i := range views { // by service, then by renderer
		for _, ofRenderer := range acks {
			r.rendered(ofRenderer[i])
		}
	}
	for _, view := range views {
		r.Services = append(r.Services, r.service(view))
	}
	for _, s := range objects.Services {
		if !normalize.SelectedService(s) {
			in := &messages.ServiceInput{Key: normalize.Key(s.GetNamespace(), s.GetName()), Service: s}
			r.Services = append(r.Services, r.service(service.Resolve(in, node, opts.Serving)))
		}
	}
	slices.SortFunc(r.Services, func(a, b Service) int { return strings.Compare(a.Service, b.Service) })
	return r, problems, nil
}

// unknownNode names the existing nodes.
func unknownNode(name string, nodes map[string]*messages.Node) error {
	if len(nodes) == 0 {
		return fmt.Errorf("%w %q: the input holds no Node objects", ErrUnknownNode, name)
	}
	return fmt.Errorf("%w %q: the input holds %s", ErrUnknownNode, name, strings.Join(slices.Sorted(maps.Keys(nodes)), ", "))
}

// rendered adds the rows and approximations of one renderer for a service.
func (r *Report) rendered(ack *messages.RenderAck) {
	r.Rows = append(r.Rows, api.Rows(ack.GetKey(), ack.GetRows())...)
	r.Approximations = append(r.Approximations, api.Approximations(ack.GetApproximations())...)
	for _, c := range ack.GetConflicts() {
		r.Approximations = append(r.Approximations, api.FrontendApproximation{
			Service: ack.GetKey(), Frontend: c.GetFrontend(), Wanted: "forward", Rendered: "no row",
			Why: "the frontend belongs to " + c.GetOwner() + ", which is older or has the smaller name",
		})
	}
	r.Approximations = append(r.Approximations, api.Unrendered(r.Frontends, ack.GetUnrendered())...)
}
