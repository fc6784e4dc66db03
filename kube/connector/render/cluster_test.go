package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// reporter is a test of testing or of rapid.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// cluster is a namespace that handles writes like the API server: it checks objects, fills in
// defaults, and refuses writes to an object that has changed.
type cluster struct {
	t        reporter
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
	version  int
	refuse   func(Write) bool // fails a write; nil = none
	writes   []string
}

func newCluster(t reporter) *cluster {
	return &cluster{t: t, services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{}}
}

// options of the tests.
var options = Options{Namespace: "outside", Policy: catalog.Policy{ServiceRanges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}}

// observed returns the objects in no order.
func (c *cluster) observed() Observed {
	var out Observed
	for _, s := range c.services {
		out.Services = append(out.Services, s)
	}
	for _, s := range c.slices {
		out.Slices = append(out.Slices, s)
	}
	return out
}

// reconcile makes one pass for services of source "yaml", and returns its writes and problems.
func (c *cluster) reconcile(o Options, services ...catalog.Service) ([]string, []catalog.Problem) {
	sources := []catalog.Sourced{{Source: "yaml", Services: services}}
	wanted := Render(sources, c.observed(), o)
	changes := Diff(wanted, c.observed(), sources, o)
	c.writes = nil
	for _, work := range changes.Work {
		for _, w := range work.Writes {
			if c.refuse != nil && c.refuse(w) {
				break // the rest of the work of this service is retried
			}
			c.write(w)
		}
	}
	return c.writes, append(wanted.Problems, changes.Problems...)
}

// write carries a write out.
func (c *cluster) write(w Write) {
	c.t.Helper()
	c.version++
	if s := w.Service; s != nil {
		c.writes = append(c.writes, fmt.Sprintf("%s Service %s", w.Verb, s.Name))
		have := c.services[s.Name]
		c.precondition(w.Verb, have != nil, func() bool { return have.UID == s.UID && have.ResourceVersion == s.ResourceVersion })
		if w.Verb == Delete {
			delete(c.services, s.Name)
			return
		}
		s = s.DeepCopy()
		if s.UID == "" {
			s.UID = types.UID(fmt.Sprint("uid-", c.version))
			s.Spec.ClusterIP = cmp.Or(s.Spec.ClusterIP, fmt.Sprint("10.96.0.", c.version%250+1))
			s.Spec.SessionAffinity = corev1.ServiceAffinityNone
		}
		s.ResourceVersion = fmt.Sprint(c.version)
		checkService(c.t, s)
		c.services[s.Name] = s
		return
	}
	s := w.Slice
	c.writes = append(c.writes, fmt.Sprintf("%s EndpointSlice %s", w.Verb, s.Name))
	have := c.slices[s.Name]
	c.precondition(w.Verb, have != nil, func() bool { return have.UID == s.UID && have.ResourceVersion == s.ResourceVersion })
	if w.Verb == Delete {
		delete(c.slices, s.Name)
		return
	}
	if len(s.OwnerReferences) == 0 { // as the writer does after it created the Service
		s = Own(s, c.services[s.Labels[discoveryv1.LabelServiceName]])
	}
	s = s.DeepCopy()
	s.UID = types.UID(cmp.Or(string(s.UID), fmt.Sprint("uid-", c.version)))
	s.ResourceVersion = fmt.Sprint(c.version)
	checkSlice(c.t, s)
	c.slices[s.Name] = s
}

// precondition checks what the API server would answer with a conflict.
func (c *cluster) precondition(verb Verb, exists bool, same func() bool) {
	c.t.Helper()
	if (verb == Create) == exists || exists && !same() {
		c.t.Fatalf("conflict: %s", c.writes[len(c.writes)-1])
	}
}

// checkService does the API server's validation of a Service.
func checkService(t reporter, s *corev1.Service) {
	t.Helper()
	problems := validation.IsDNS1035Label(s.Name)
	for key, value := range s.Labels {
		problems = append(problems, validation.IsQualifiedName(key)...)
		problems = append(problems, validation.IsValidLabelValue(value)...)
	}
	size := 0
	for key, value := range s.Annotations {
		problems = append(problems, validation.IsQualifiedName(strings.ToLower(key))...)
		size += len(key) + len(value)
	}
	names, numbers := map[string]bool{}, map[string]bool{}
	for _, p := range s.Spec.Ports {
		number := fmt.Sprint(p.Port, p.Protocol)
		if names[p.Name] || numbers[number] || p.Name == "" && len(s.Spec.Ports) > 1 {
			problems = append(problems, fmt.Sprintf("port %q %s twice or without a name", p.Name, number))
		}
		names[p.Name], numbers[number] = true, true
		if p.Name != "" {
			problems = append(problems, validation.IsDNS1123Label(p.Name)...)
		}
		problems = append(problems, validation.IsValidPortNum(int(p.Port))...)
	}
	if len(s.Spec.Ports) == 0 || size > 256<<10 || s.Spec.ClusterIP == "" {
		problems = append(problems, fmt.Sprintf("%d ports, %d bytes of annotations, cluster IP %q", len(s.Spec.Ports), size, s.Spec.ClusterIP))
	}
	if len(problems) > 0 {
		t.Fatalf("Service %s: %v", s.Name, problems)
	}
}

// checkSlice does the API server's validation of an EndpointSlice.
func checkSlice(t reporter, s *discoveryv1.EndpointSlice) {
	t.Helper()
	problems := validation.IsDNS1123Subdomain(s.Name)
	for _, value := range s.Labels {
		problems = append(problems, validation.IsValidLabelValue(value)...)
	}
	seen := map[string]bool{}
	for _, e := range s.Endpoints {
		address, err := netip.ParseAddr(e.Addresses[0])
		switch {
		case err != nil || len(e.Addresses) != 1 || seen[e.Addresses[0]] || address.String() != e.Addresses[0]:
			problems = append(problems, fmt.Sprintf("addresses %q: %v", e.Addresses, err))
		case address.Is4() != (s.AddressType == discoveryv1.AddressTypeIPv4) || address.Is4In6():
			problems = append(problems, fmt.Sprintf("%s in a slice of %s", address, s.AddressType))
		case address.IsUnspecified() || address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsMulticast():
			problems = append(problems, fmt.Sprintf("special address %s", address))
		}
		seen[e.Addresses[0]] = true
	}
	if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID == "" || len(s.Endpoints) == 0 || len(s.Endpoints) > perSlice || len(s.Ports) == 0 {
		problems = append(problems, fmt.Sprintf("%d owners, %d endpoints, %d ports", len(s.OwnerReferences), len(s.Endpoints), len(s.Ports)))
	}
	if len(problems) > 0 {
		t.Fatalf("EndpointSlice %s: %v", s.Name, problems)
	}
}

// contents returns the endpoints of a Service for its clients, each with its port and state,
// ordered.
func (c *cluster) contents(service string) []string {
	var out []string
	for _, s := range c.slices {
		if s.Labels[discoveryv1.LabelServiceName] != service {
			continue
		}
		for _, e := range s.Endpoints {
			for _, p := range s.Ports {
				text := fmt.Sprintf("%s=%s/%s", *p.Name, netip.AddrPortFrom(netip.MustParseAddr(e.Addresses[0]), uint16(*p.Port)), *p.Protocol)
				switch {
				case *e.Conditions.Terminating:
					text += " terminating"
				case !*e.Conditions.Ready:
					text += " not ready"
				}
				out = append(out, text)
			}
		}
	}
	slices.Sort(out)
	return out
}

// ports returns the ports of a Service.
func (c *cluster) ports(service string) []string {
	var out []string
	for _, p := range c.services[service].Spec.Ports {
		out = append(out, fmt.Sprintf("%s=%d/%s", p.Name, p.Port, p.Protocol))
	}
	return out
}

// equal compares lists.
func equal[T comparable](t reporter, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// web is a service with a declared port and instances at these addresses.
func web(addresses ...string) catalog.Service {
	out := catalog.Service{Name: "web", Ports: []catalog.Port{{Name: "http", Number: 80}}}
	for _, a := range addresses {
		out.Instances = append(out.Instances, catalog.Instance{Address: a})
	}
	return out
}
