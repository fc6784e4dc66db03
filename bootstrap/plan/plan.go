package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/bootstrap/show"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
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
	// NAT44 are the settings of the renderer. An invalid TwiceNAT is derived from the node, as in a running agent. Guarded is ignored: the plan
	// is for a VPP with access lists.
	NAT44 nat44.Config
}

// Report is the plan of a node. Lists are never nil; frontends and rows are ordered by service, then in the order of their packages.
type Report struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Frontends are those that Kubernetes requires.
	Frontends []show.Frontend `json:"frontends"`
	// HealthChecks are the health-check node ports.
	HealthChecks []show.HealthCheck `json:"healthChecks"`
	// Rows are those that the renderer would install.
	Rows []show.Row `json:"rows"`
	// Approximations are the differences between rows and frontends.
	Approximations []show.Approximation `json:"approximations"`
}

// Build plans one node. It returns the problems that it has found, without those of objects. The error is ErrUnknownNode with the names of the
// existing nodes.
func Build(objects *normalize.Objects, opts Options) (*Report, []*messages.ObjectError, error) {
	snapshot := kube.Collect(opts.Node, objects.Select(opts.Node), nil)
	self := snapshot.GetNode().GetSelf()
	if self == nil {
		return nil, nil, unknownNode(opts.Node, snapshot.GetNode().GetNodes())
	}
	opts.NAT44 = actors.NAT44For(opts.NAT44, self)
	b := builder{
		opts: opts, claims: nat44.NewClaims(),
		node: &messages.NodeContext{Node: self, Addresses: self.GetAddresses()},
		report: &Report{
			Node: opts.Node, Frontends: []show.Frontend{}, HealthChecks: []show.HealthCheck{}, Rows: []show.Row{},
			Approximations: []show.Approximation{},
		},
	}
	for _, input := range snapshot.GetServices() {
		b.service(input)
	}
	unguarded := b.guard()
	for _, view := range b.views {
		b.plan(view, !slices.Contains(unguarded, view.GetKey()))
	}
	for _, plan := range b.plans {
		b.rows(plan)
	}
	return b.report, b.problems, nil
}

// unknownNode names the existing nodes.
func unknownNode(name string, nodes map[string]*messages.Node) error {
	if len(nodes) == 0 {
		return fmt.Errorf("%w %q: the input holds no Node objects", ErrUnknownNode, name)
	}
	return fmt.Errorf("%w %q: the input holds %s", ErrUnknownNode, name, strings.Join(slices.Sorted(maps.Keys(nodes)), ", "))
}

// builder collects a report.
type builder struct {
	opts     Options
	node     *messages.NodeContext
	claims   *nat44.Claims
	views    []*messages.ServiceView
	plans    []*nat44.ServicePlan
	report   *Report
	problems []*messages.ObjectError
}

// service resolves one service. Its rows follow later, because they depend on the access lists.
func (b *builder) service(input *messages.ServiceInput) {
	view := service.Resolve(input, b.node, b.opts.Serving)
	b.report.Frontends = append(b.report.Frontends, show.Frontends(view)...)
	b.report.HealthChecks = append(b.report.HealthChecks, show.HealthChecks(view)...)
	b.problems = append(b.problems, view.GetErrors()...)
	b.views = append(b.views, view)
}

// guard plans the access lists for source ranges and reports their approximations. It returns the services for which the lists have no room.
func (b *builder) guard() (unguarded []string) {
	views := slices.Clone(b.views)
	slices.SortStableFunc(views, func(a, b *messages.ServiceView) int {
		return cmp.Or(cmp.Compare(a.GetCreated(), b.GetCreated()), strings.Compare(a.GetKey(), b.GetKey()))
	})
	plans := make([]*acl.ServicePlan, len(views))
	for i, view := range views {
		plans[i] = acl.Plan(view, acl.Config{})
	}
	_, room := acl.Fit(plans)
	for _, plan := range plans {
		said := plan.Approximations
		if slices.Contains(room.Unguarded, plan.Service) {
			said = plan.Unguarded
		}
		b.report.Approximations = append(b.report.Approximations, show.Approximations(said)...)
		b.unrendered(plan.Unrendered)
	}
	b.unrendered(room.Errors)
	return room.Unguarded
}

// plan computes the rows of one service. They are reported later, when all claims are known.
func (b *builder) plan(view *messages.ServiceView, guarded bool) {
	config := b.opts.NAT44
	config.Guarded = guarded
	plan := nat44.Plan(view, config)
	b.claims.Set(view.GetKey(), view.GetCreated(), plan.Rows)
	b.plans = append(b.plans, plan)
}

// rows reports the rows of one service that no other service claims first.
func (b *builder) rows(plan *nat44.ServicePlan) {
	var states []*messages.RowState
	for i := range plan.Rows {
		if owner, _ := b.claims.Owner(plan.Rows[i].Key); owner == plan.Service {
			states = append(states, plan.Rows[i].State(false, nil))
		}
	}
	b.report.Rows = append(b.report.Rows, show.Rows(plan.Service, states)...)
	b.report.Approximations = append(b.report.Approximations, show.Approximations(plan.Approximations)...)
	for _, c := range b.claims.Conflicts(plan.Service) {
		b.report.Approximations = append(b.report.Approximations, show.Approximation{
			Service: plan.Service, Frontend: c.GetFrontend(), Wanted: "forward", Rendered: "no row",
			Why: "the frontend belongs to " + c.GetOwner() + ", which is older or has the smaller name",
		})
	}
	b.unrendered(plan.Unrendered)
}

// unrendered reports parts that VPP cannot express.
func (b *builder) unrendered(parts []*messages.ObjectError) {
	b.report.Approximations = append(b.report.Approximations, show.Unrendered(b.report.Frontends, parts)...)
}
