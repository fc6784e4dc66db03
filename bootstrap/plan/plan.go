package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/acl"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/rule"
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

// Beside is an object in VPP beside the rows: a route, or a rule of an access list.
type Beside struct {
	// Service is "namespace/name"; "" = a route for a whole service network.
	Service string `json:"service,omitempty"`
	// Object is "route" or "access list".
	Object string `json:"object"`
	// Text describes it in one line.
	Text string `json:"text"`
}

// beside returns the routes, then the rules of access lists.
func beside(cluster *messages.NodeInput, views []*messages.ServiceView, opts Options) []Beside {
	out, rules := []Beside{}, []Beside{}
	addresses, pods := desired.Used(cluster, nil)
	ground := rule.NewGround(&messages.Begin{NodeAddresses: addresses, PodNetworks: pods}, nil, opts.NAT44.Ground.Reserved)
	claims, owner := map[netip.Prefix][]routes.Claim{}, map[netip.Prefix]string{}
	networks := opts.Serving.ServiceCIDRs
	if len(networks) == 0 {
		networks = service.Networks(cluster.GetServiceCidrs())
	}
	for prefix, claim := range routes.Networks(networks) {
		claims[prefix] = append(claims[prefix], claim)
	}
	guards := acl.Config{Routed: opts.NAT44.Unreachable, IPv6Elsewhere: opts.CNAT != nil, Ground: ground}
	for _, view := range views {
		for _, claim := range routes.Plan(view, routes.Config{}).Claims {
			claims[claim.Prefix()] = append(claims[claim.Prefix()], claim)
			owner[claim.Prefix()] = view.GetKey()
		}
		if opts.CNAT != nil && opts.CNAT.IPv4 {
			continue // without NAT44 there are no access lists
		}
		for _, r := range acl.Plan(view, guards).Rules() {
			rules = append(rules, Beside{Service: view.GetKey(), Object: "access list", Text: r.String()})
		}
	}
	for _, prefix := range slices.SortedFunc(maps.Keys(claims), netip.Prefix.Compare) {
		if route, wanted := routes.Resolve(prefix, claims[prefix], ground); wanted {
			out = append(out, Beside{Service: owner[prefix], Object: "route", Text: route.String() + " " + prefix.String()})
		}
	}
	return append(out, rules...)
}

// Stdin is the name that stands for standard input.
const Stdin = "-"

// Read decodes the named files, in order: "-" is stdin, a directory stands for the *.yaml, *.yml
// and *.json in it, ordered by name. If two files have the same object, the first one counts and
// the second one is a problem. The error is about a file that cannot be read.
func Read(names []string, stdin io.Reader) (*normalize.Objects, []*messages.ObjectError, error) {
	all := merger{objects: &normalize.Objects{}, from: map[string]string{}}
	for _, name := range names {
		paths, err := expand(name)
		if err != nil {
			return nil, nil, err
		}
		for _, path := range paths {
			if err := all.file(path, stdin); err != nil {
				return nil, nil, err
			}
		}
	}
	return all.objects, all.problems, nil
}

// expand returns the files of a directory, or the name itself.
func expand(name string) ([]string, error) {
	if name == Stdin {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name) // ordered by name
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			paths = append(paths, filepath.Join(name, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("read objects: directory %s has no *.yaml, *.yml or *.json", name)
	}
	return paths, nil
}

// merger joins the objects of several files.
type merger struct {
	objects  *normalize.Objects
	problems []*messages.ObjectError
	from     map[string]string // kind and key of an object -> file
}

// file decodes one file and joins its objects.
func (m *merger) file(path string, stdin io.Reader) error {
	in, name := stdin, "stdin"
	if path != Stdin {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read objects: %w", err)
		}
		defer f.Close()
		in, name = f, path
	}
	objects, problems := files.Decode(in, name)
	m.problems = append(m.problems, problems...)
	o := m.objects
	o.Services = join(m, name, normalize.KindService, o.Services, objects.Services, normalize.ServiceKey)
	o.Slices = join(m, name, normalize.KindEndpointSlice, o.Slices, objects.Slices, normalize.SliceKey)
	o.Nodes = join(m, name, normalize.KindNode, o.Nodes, objects.Nodes, (*messages.Node).GetName)
	o.Pods = join(m, name, normalize.KindPod, o.Pods, objects.Pods, normalize.PodKey)
	o.ServiceCIDRs = join(m, name, normalize.KindServiceCIDR, o.ServiceCIDRs, objects.ServiceCIDRs, func(c *normalize.ServiceCIDRs) string { return c.Name })
	o.Ignored += objects.Ignored
	return nil
}

// join appends the objects of one file, except objects of earlier files.
func join[T any](m *merger, file, kind string, to, more []T, key func(T) string) []T {
	for _, one := range more {
		id := kind + " " + key(one)
		if first, twice := m.from[id]; twice {
			m.problems = append(m.problems, &messages.ObjectError{
				Source: file, Kind: kind, Object: key(one), Message: "stands in " + first + " too, which counts",
			})
			continue
		}
		m.from[id] = file
		to = append(to, one)
	}
	return to
}

// Service is the plan of one service in one line.
type Service struct {
	// Service is "namespace/name".
	Service string `json:"service"`
	// Plan is one of Words.
	Plan string `json:"plan"`
	// Frontends and Endpoints count its frontends and their distinct endpoints.
	Frontends int `json:"frontends"`
	Endpoints int `json:"endpoints"`
	// Why are the reasons for another plan than "as asked", each once.
	Why []string `json:"why"`
}

// Words are the values of Service.Plan.
func Words() []string { return []string{"as asked", "approximated", "refused", "not served"} }

// Summary counts the services by their plan, and services that no node serves by their kind:
// "3 services: 2 as asked, 1 headless".
func (r *Report) Summary() string {
	counts := map[string]int{}
	for i := range r.Services {
		word := r.Services[i].Plan
		if why := strings.Join(r.Services[i].Why, ""); why == "headless" || why == "ExternalName" {
			word = why
		}
		counts[word]++
	}
	var parts []string
	for _, word := range append(Words(), "headless", "ExternalName") {
		if n := counts[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	noun := "services"
	if len(r.Services) == 1 {
		noun = "service"
	}
	return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", len(r.Services), noun, strings.Join(parts, ", ")), ": ")
}

// Only returns the parts of the plan that belong to some services.
func (r *Report) Only(chosen func(key string) bool) *Report {
	return &Report{
		Node:           r.Node,
		Services:       only(r.Services, func(s Service) bool { return chosen(s.Service) }),
		Frontends:      only(r.Frontends, func(f api.Frontend) bool { return chosen(f.Service) }),
		HealthChecks:   only(r.HealthChecks, func(h api.HealthCheck) bool { return chosen(h.Service) }),
		Rows:           only(r.Rows, func(row api.Row) bool { return chosen(row.Service) }),
		Beside:         only(r.Beside, func(b Beside) bool { return b.Service == "" || chosen(b.Service) }),
		Approximations: only(r.Approximations, func(a api.FrontendApproximation) bool { return chosen(a.Service) }),
		Problems:       r.Problems,
	}
}

func only[T any](all []T, chosen func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !chosen(one) })
}

// service is the line of a service whose rows and approximations are in the report.
func (r *Report) service(view *messages.ServiceView) Service {
	s := Service{Service: view.GetKey(), Frontends: len(view.GetFrontends()), Why: []string{}}
	endpoints := map[string]bool{}
	rejects, rows := 0, 0
	for _, f := range view.GetFrontends() {
		for _, b := range f.GetBackends() {
			endpoints[service.BackendText(b)] = true
		}
		if f.GetAction() == messages.Action_ACTION_REJECT {
			rejects++
		}
	}
	s.Endpoints = len(endpoints)
	for i := range r.Rows {
		if r.Rows[i].Service == s.Service {
			rows++
		}
	}
	for _, a := range r.Approximations {
		if text := a.Rendered + ": " + a.Why; a.Service == s.Service && !slices.Contains(s.Why, text) {
			s.Why = append(s.Why, text)
		}
	}
	none := cmp.Or(view.GetNotServed(), view.GetRefused())
	switch {
	case none != "":
		s.Plan, s.Why = "not served", []string{none}
	case rejects > 0 && rejects == s.Frontends:
		s.Plan, s.Why = "refused", append([]string{"no endpoint is ready"}, s.Why...)
	case rows == 0:
		s.Plan = "not served"
	case len(s.Why) > 0:
		s.Plan = "approximated"
	default:
		s.Plan = "as asked"
	}
	return s
}
