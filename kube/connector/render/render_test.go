package render

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// TestA2PortsOfInstances: each address is an endpoint with its own ports only.
func TestA2PortsOfInstances(t *testing.T) {
	c := newCluster(t)
	_, problems := c.reconcile(options, catalog.Service{Name: "web", Instances: []catalog.Instance{
		{Address: "192.0.2.1", Ports: map[string]uint16{"http": 8080}},
		{Address: "192.0.2.2", Ports: map[string]uint16{"http": 9090, "admin": 1}},
	}})
	equal(t, "ports", c.ports("web"), "admin=1/TCP", "http=8080/TCP")
	equal(t, "contents", c.contents("web"), "admin=192.0.2.2:1/TCP", "http=192.0.2.1:8080/TCP", "http=192.0.2.2:9090/TCP")
	if len(c.slices) != 2 || len(problems) != 1 || !strings.Contains(problems[0].Message, "2 numbers") {
		t.Errorf("%d slices, problems %v", len(c.slices), problems)
	}
	// A declared number decides the Service port, and does not change the ports of instances.
	s := web("192.0.2.1")
	s.Instances = append(s.Instances, catalog.Instance{Address: "192.0.2.2", Ports: map[string]uint16{"http": 9090}})
	if _, problems = c.reconcile(options, s); len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	equal(t, "ports", c.ports("web"), "http=80/TCP")
	equal(t, "contents", c.contents("web"), "http=192.0.2.1:80/TCP", "http=192.0.2.2:9090/TCP")
}

// TestPortProblems: only an unusable port is left out, and only an instance without a usable port.
func TestPortProblems(t *testing.T) {
	c := newCluster(t)
	_, problems := c.reconcile(options, catalog.Service{
		Name: "web",
		Ports: []catalog.Port{
			{Name: "http", Number: 80},
			{Name: "again", Number: 80},
			{Name: "http", Number: 81},
			{Name: "icmp", Number: 1, Protocol: "ICMP"},
			{Number: 7},
			{Name: "none"},
			{Name: "Web_UI", Number: 8080, Protocol: "tcp"},
			{Name: "udp", Number: 80, Protocol: "UDP"},
		},
		Instances: []catalog.Instance{
			{Address: "192.0.2.1"},
			{Address: "192.0.2.2", Ports: map[string]uint16{"other": 5}},
			{Address: "192.0.2.3", Ports: map[string]uint16{"http": 0}},
			{Address: "192.0.2.1", State: catalog.NotReady},
		},
	}, catalog.Service{Name: "empty"})
	label := catalog.Label("", "Web_UI")
	equal(t, "ports", c.ports("web"), "http=80/TCP", "udp=80/UDP", label+"=8080/TCP")
	equal(t, "contents", c.contents("web"), "http=192.0.2.1:80/TCP", "udp=192.0.2.1:80/UDP", label+"=192.0.2.1:8080/TCP")
	if n := catalog.Count(problems); n[catalog.ReasonPort] != 9 || n[catalog.ReasonDuplicate] != 1 || len(problems) != 10 {
		t.Errorf("%v: %v", n, problems)
	}
	if c.services["empty"] != nil {
		t.Error("a Service without a port was created")
	}
}

// TestManyPorts: instances cannot cause a Service that the API server refuses.
func TestManyPorts(t *testing.T) {
	c := newCluster(t)
	s := catalog.Service{Name: "web", Instances: []catalog.Instance{{Address: "192.0.2.1", Ports: map[string]uint16{}}}}
	for i := range mostPorts + 5 {
		s.Instances[0].Ports[fmt.Sprintf("p%03d", i)] = uint16(i + 1)
	}
	_, problems := c.reconcile(options, s)
	if n := len(c.ports("web")); n != mostPorts || catalog.Count(problems)[catalog.ReasonLimit] != 1 {
		t.Errorf("%d ports, problems %v", n, problems)
	}
}

// TestManySlices: services above the limit of all slices are kept unchanged, with a problem for
// each. The others are rendered.
func TestManySlices(t *testing.T) {
	var services []catalog.Service
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s := catalog.Service{Name: name}
		for i := range mostSlices / 4 {
			s.Instances = append(s.Instances, catalog.Instance{Address: "192.0.2.1", Ports: map[string]uint16{"": uint16(1 + i)}})
		}
		services = append(services, s)
	}
	services = append(services, web("192.0.2.1"))
	services[0].Instances = services[0].Instances[1:] // room for one
	wanted := Render([]catalog.Sourced{{Source: "test", Services: services}}, Observed{}, options)
	n := 0
	for _, w := range wanted.Services {
		n += len(w.Slices)
		if w.Keep != (w.Name == "e") {
			t.Errorf("%s is kept: %t", w.Name, w.Keep)
		}
	}
	if n != mostSlices || catalog.Count(wanted.Problems)[catalog.ReasonLimit] != 1 {
		t.Errorf("%d slices, want %d; problems %v", n, mostSlices, catalog.Count(wanted.Problems))
	}
}

// TestA4AllUnhealthy: health changes only the state of endpoints. An unhealthy instance is not
// gone, and a Service without instances stays.
func TestA4AllUnhealthy(t *testing.T) {
	c := newCluster(t)
	s := web("192.0.2.1", "192.0.2.2")
	c.reconcile(options, s)
	s.Instances[0].State = catalog.NotReady
	s.Instances[1].State = catalog.Terminating
	writes, _ := c.reconcile(options, s)
	if len(writes) != 1 || !strings.HasPrefix(writes[0], "update EndpointSlice web-ipv4-") {
		t.Errorf("writes %v", writes)
	}
	equal(t, "contents", c.contents("web"), "http=192.0.2.1:80/TCP not ready", "http=192.0.2.2:80/TCP terminating")
	// Known to be empty: no endpoints, the Service and its address stay.
	ip := c.services["web"].Spec.ClusterIP
	c.reconcile(options, web())
	if len(c.slices) != 0 || c.services["web"].Spec.ClusterIP != ip {
		t.Errorf("%d slices, Service %+v", len(c.slices), c.services["web"])
	}
	// The same for ports that come from the instances.
	c.reconcile(options, catalog.Service{Name: "web"})
	equal(t, "ports", c.ports("web"), "http=80/TCP")
}

// TestA11Names: odd names give valid objects that a second pass finds again.
func TestA11Names(t *testing.T) {
	c := newCluster(t)
	var services []catalog.Service
	for _, name := range []string{"UPPER", "a_b", "a.b", strings.Repeat("long", 20), "größe"} {
		s := web("192.0.2.1")
		s.Name = name
		services = append(services, s)
	}
	if _, problems := c.reconcile(options, services...); len(c.services) != 5 || len(problems) > 0 {
		t.Errorf("%d Services, problems %v", len(c.services), problems)
	}
	writes, _ := c.reconcile(options, services...)
	equal(t, "writes", writes)
	equal(t, "names", Owned(c.observed(), "yaml", options), "UPPER", "a.b", "a_b", "größe", strings.Repeat("long", 20))
}

// TestA13Addresses: each family has its own slices. Refused addresses are only counted.
func TestA13Addresses(t *testing.T) {
	c := newCluster(t)
	s := web("192.0.2.1", "2001:db8::1", "::ffff:192.0.2.2", "127.0.0.1", "169.254.169.254", "10.96.0.1", "db.example.com", "")
	s.Instances[7].NodeAddress = "192.0.2.3"
	_, problems := c.reconcile(options, s)
	equal(t, "contents", c.contents("web"),
		"http=192.0.2.1:80/TCP", "http=192.0.2.2:80/TCP", "http=192.0.2.3:80/TCP", "http=[2001:db8::1]:80/TCP")
	n := catalog.Count(problems)
	if len(c.slices) != 2 || len(problems) != 4 || n[catalog.ReasonLoopback]+n[catalog.ReasonLinkLocal]+n[catalog.ReasonServiceRange]+n[catalog.ReasonNoAddress] != 4 {
		t.Errorf("%d slices, problems %v", len(c.slices), problems)
	}
	if problems[0].Source != "yaml" || problems[0].Service != "web" || problems[0].Instance != "127.0.0.1" {
		t.Errorf("problem %+v", problems[0])
	}
}

// TestA27Families: the Service takes the families that the cluster has, and each family has its own
// slice.
func TestA27Families(t *testing.T) {
	c := newCluster(t)
	c.reconcile(options, web("192.0.2.1", "2001:db8::1"))
	if p := c.services["web"].Spec.IPFamilyPolicy; p == nil || *p != corev1.IPFamilyPolicyPreferDualStack {
		t.Errorf("policy %v", p)
	}
	types := map[discoveryv1.AddressType]string{}
	for _, s := range c.slices {
		types[s.AddressType] += strings.Join(s.Endpoints[0].Addresses, " ")
	}
	if len(types) != 2 || types[discoveryv1.AddressTypeIPv4] != "192.0.2.1" || types[discoveryv1.AddressTypeIPv6] != "2001:db8::1" {
		t.Errorf("slices %v", types)
	}
	c.reconcile(options, web("2001:db8::1"))
	equal(t, "contents", c.contents("web"), "http=[2001:db8::1]:80/TCP")
}

// TestA14PortsFollow: protocol and number of a port change, a port goes.
func TestA14PortsFollow(t *testing.T) {
	c := newCluster(t)
	s := web("192.0.2.1")
	s.Ports = append(s.Ports, catalog.Port{Name: "dns", Number: 53})
	c.reconcile(options, s)
	s.Ports[1].Protocol = "UDP"
	c.reconcile(options, s)
	equal(t, "ports", c.ports("web"), "dns=53/UDP", "http=80/TCP")
	equal(t, "contents", c.contents("web"), "dns=192.0.2.1:53/UDP", "http=192.0.2.1:80/TCP")
	s.Ports = s.Ports[:1]
	s.Ports[0].Number = 8080
	writes, _ := c.reconcile(options, s)
	equal(t, "ports", c.ports("web"), "http=8080/TCP")
	equal(t, "contents", c.contents("web"), "http=192.0.2.1:8080/TCP")
	// First the new slice, then the old one goes: there is always an endpoint.
	if len(writes) != 3 || !strings.HasPrefix(writes[1], "create") || !strings.HasPrefix(writes[2], "delete") {
		t.Errorf("writes %v", writes)
	}
}

// TestA15NothingChanges: an equal snapshot causes no write, whatever its order.
func TestA15NothingChanges(t *testing.T) {
	c := newCluster(t)
	services := []catalog.Service{web("192.0.2.1", "192.0.2.2", "2001:db8::1"), {Name: "db", Instances: []catalog.Instance{
		{Address: "192.0.2.5", Ports: map[string]uint16{"": 5432}, Zone: "a"},
	}}}
	for _, o := range []Options{options, {Namespace: "outside", Flomesh: true, ClusterID: "c1", Prefix: "x-"}} {
		if writes, _ := c.reconcile(o, services...); len(writes) < 5 {
			t.Errorf("writes %v", writes)
		}
		for range 10 {
			rand.Shuffle(3, func(i, j int) {
				in := services[0].Instances
				in[i], in[j] = in[j], in[i]
			})
			writes, _ := c.reconcile(o, services...)
			equal(t, "writes", writes)
			services[0], services[1] = services[1], services[0]
			writes, _ = c.reconcile(o, services...)
			equal(t, "writes", writes)
			services[0], services[1] = services[1], services[0]
		}
	}
}

// TestA16Churn: an added or removed endpoint changes only its slice. Slices with few endpoints are
// merged.
func TestA16Churn(t *testing.T) {
	c := newCluster(t)
	var addresses []string
	for i := range 250 {
		addresses = append(addresses, fmt.Sprintf("192.0.%d.%d", 2+i/100, 1+i%100))
	}
	c.reconcile(options, web(addresses...))
	if len(c.slices) != 3 {
		t.Fatalf("%d slices", len(c.slices))
	}
	for i := range 50 {
		addresses[i*3] = fmt.Sprintf("198.51.100.%d", i+1)
		if writes, _ := c.reconcile(options, web(addresses...)); len(writes) > 2 || len(writes) == 0 {
			t.Errorf("writes %v", writes)
		}
		if n := len(c.contents("web")); n != 250 || len(c.slices) != 3 {
			t.Errorf("%d endpoints in %d slices", n, len(c.slices))
		}
	}
	few := []string{addresses[0], addresses[120], addresses[240]}
	c.reconcile(options, web(few...))
	if n := len(c.contents("web")); n != 3 || len(c.slices) != 1 {
		t.Errorf("%d endpoints in %d slices", n, len(c.slices))
	}
}

// TestHeadless: a headless Service has no cluster IP. An existing Service with a cluster IP stays,
// and is reported.
func TestHeadless(t *testing.T) {
	c := newCluster(t)
	c.reconcile(options, web("192.0.2.1"))
	headless := options
	headless.Headless = true
	other := web("192.0.2.2")
	other.Name = "other"
	writes, problems := c.reconcile(headless, web("192.0.2.1", "192.0.2.3"), other)
	if c.services["web"].Spec.ClusterIP == corev1.ClusterIPNone || c.services["other"].Spec.ClusterIP != corev1.ClusterIPNone || len(writes) != 3 {
		t.Errorf("writes %v", writes)
	}
	if len(problems) != 1 || problems[0].Reason != catalog.ReasonImmutable || problems[0].Service != "web" {
		t.Errorf("problems %v", problems)
	}
}

// TestFlomesh: the labels and annotations of the flomesh connector follow the instances, and stay
// below the limit of annotations.
func TestFlomesh(t *testing.T) {
	o := options
	o.Flomesh = true
	c := newCluster(t)
	s := web("192.0.2.1", "2001:db8::1")
	s.Name = "UPPER"
	s.Instances = append(s.Instances, catalog.Instance{Address: "192.0.2.1", Ports: map[string]uint16{"http": 8080}})
	c.reconcile(o, s)
	have := c.services[catalog.Label("", "UPPER")]
	for key, want := range map[string]string{
		"flomesh.io/mesh-service-sync":              "false",
		"flomesh.io/cloud-service-inherited-from":   "upper",
		"flomesh.io/cloud-endpoint-addr-3221225985": "[80 8080]",
	} {
		if have.Annotations[key] != want {
			t.Errorf("%s is %q, want %q", key, have.Annotations[key], want)
		}
	}
	if have.Labels["cloud-sourced-service"] != "true" || have.Labels["cloud-service"] != have.Name || len(have.Annotations) != 4 {
		t.Errorf("labels %v, annotations %v", have.Labels, have.Annotations)
	}
	s.Instances = s.Instances[1:2]
	c.reconcile(o, s)
	if have := c.services[have.Name]; len(have.Annotations) != 3 {
		t.Errorf("annotations %v", have.Annotations)
	}
	for i := range 9000 {
		s.Instances = append(s.Instances, catalog.Instance{Address: fmt.Sprintf("198.18.%d.%d", i/250, i%250+1)})
	}
	c.reconcile(o, s) // the cluster checks the size
	if have := c.services[have.Name]; len(have.Annotations) != 3+mostFlomesh {
		t.Errorf("%d annotations", len(have.Annotations))
	}
}
