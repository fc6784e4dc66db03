package plan

import (
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
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// ErrUnknownNode means that the objects hold no Node of the wanted name.
var ErrUnknownNode = errors.New("unknown node")

// Options are what a plan depends on besides the objects.
type Options struct {
	// Node is the name of the node to plan for.
	Node string
	// Serving are the settings of the service semantics.
	Serving service.Config
	// NAT44 are the settings of the renderer. An invalid TwiceNAT is derived from the node as the running agent does it. Guarded does not
	// count: a VPP that can have access lists is planned for.
	NAT44 nat44.Config
}

// Report is what a node would serve. Lists are never nil; those of frontends and rows are ordered by service, then as their rooms order
// them.
type Report struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Frontends is what Kubernetes asks for.
	Frontends []show.Frontend `json:"frontends"`
	// HealthChecks are the health-check node ports.
	HealthChecks []show.HealthCheck `json:"healthChecks"`
	// Rows are what the renderer would install.
	Rows []show.Row `json:"rows"`
	// Approximations are the places where the rows do not say exactly what the frontends say.
	Approximations []show.Approximation `json:"approximations"`
}

// Build plans for one node. The problems are those found on the way, without those that were passed in. The error is ErrUnknownNode with
// the nodes that there are.
func Build(objects *normalize.Objects, opts Options) (*Report, []*messages.ObjectError, error) {
	snapshot := kube.Collect(opts.Node, objects.Select(opts.Node), nil)
	self := snapshot.GetNode().GetSelf()
	if self == nil {
		return nil, nil, unknownNode(opts.Node, snapshot.GetNode().GetNodes())
	}
	b := builder{report: &Report{
		Node: opts.Node, Frontends: []show.Frontend{}, HealthChecks: []show.HealthCheck{}, Rows: []show.Row{}, Approximations: []show.Approximation{},
	}}
	node := &messages.NodeContext{Node: self, Addresses: self.GetAddresses()}
	var views []*messages.ServiceView
	for _, input := range snapshot.GetServices() {
		views = append(views, b.service(service.Resolve(input, node, opts.Serving)))
	}
	for _, acks := range actors.DryRun(&actors.Deps{NAT44: opts.NAT44, Serving: opts.Serving}, node, views) {
		for _, ack := range acks {
			b.rendered(ack)
		}
	}
	return b.report, b.problems, nil
}

// unknownNode says which nodes there are.
func unknownNode(name string, nodes map[string]*messages.Node) error {
	if len(nodes) == 0 {
		return fmt.Errorf("%w %q: the input holds no Node objects", ErrUnknownNode, name)
	}
	return fmt.Errorf("%w %q: the input holds %s", ErrUnknownNode, name, strings.Join(slices.Sorted(maps.Keys(nodes)), ", "))
}

// builder collects a report.
type builder struct {
	report   *Report
	problems []*messages.ObjectError
}

// service reports what Kubernetes asks for, and returns the view.
func (b *builder) service(view *messages.ServiceView) *messages.ServiceView {
	b.report.Frontends = append(b.report.Frontends, show.Frontends(view)...)
	b.report.HealthChecks = append(b.report.HealthChecks, show.HealthChecks(view)...)
	b.problems = append(b.problems, view.GetErrors()...)
	return view
}

// rendered reports what one renderer makes of a service. A row of another owner is none of this service.
func (b *builder) rendered(ack *messages.RenderAck) {
	rows := slices.DeleteFunc(slices.Clone(ack.GetRows()), func(r *messages.RowState) bool { return r.GetError() != "" })
	b.report.Rows = append(b.report.Rows, show.Rows(ack.GetKey(), rows)...)
	b.report.Approximations = append(b.report.Approximations, show.Approximations(ack.GetApproximations())...)
	for _, c := range ack.GetConflicts() {
		b.report.Approximations = append(b.report.Approximations, show.Approximation{
			Service: ack.GetKey(), Frontend: c.GetFrontend(), Wanted: "forward", Rendered: "no row",
			Why: "the frontend belongs to " + c.GetOwner() + ", which is older or has the smaller name",
		})
	}
	b.report.Approximations = append(b.report.Approximations, show.Unrendered(b.report.Frontends, ack.GetUnrendered())...)
}
