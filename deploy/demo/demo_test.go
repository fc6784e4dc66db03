package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// cluster is the demo as API objects.
type cluster struct {
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
	nodes    map[string]*corev1.Node
	pods     map[string]*corev1.Pod // by namespace/name
}

// load decodes every file strictly: a field that the API does not have is an error.
func load(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
	names, err := fs.Glob(Files, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range names {
		content, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		stream := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
		for {
			document, err := stream.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c.add(t, name, document)
		}
	}
	return c
}

func (c *cluster) add(t *testing.T, file string, document []byte) {
	t.Helper()
	var head metav1.TypeMeta
	if err := strict.Unmarshal(document, &head); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	decode := func(into any) {
		// Through JSON first: decoding YAML into a Go type would turn an unquoted True into the
		// text that the type wants.
		text, err := strict.YAMLToJSONStrict(document)
		if err == nil {
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			err = d.Decode(into)
		}
		if err != nil {
			t.Errorf("%s: %s: %v", file, head.Kind, err)
		}
	}
	switch head.GroupVersionKind().String() {
	case "/v1, Kind=Service":
		s := &corev1.Service{}
		decode(s)
		c.services = append(c.services, s)
	case "discovery.k8s.io/v1, Kind=EndpointSlice":
		s := &discoveryv1.EndpointSlice{}
		decode(s)
		c.slices = append(c.slices, s)
	case "/v1, Kind=Node":
		n := &corev1.Node{}
		decode(n)
		c.nodes[n.Name] = n
	case "/v1, Kind=Pod":
		p := &corev1.Pod{}
		decode(p)
		c.pods[p.Namespace+"/"+p.Name] = p
	case "/v1, Kind=List":
		var list struct {
			metav1.TypeMeta `json:",inline"`
			metav1.ListMeta `json:"metadata"`
			Items           []json.RawMessage `json:"items"`
		}
		decode(&list)
		for _, item := range list.Items {
			c.add(t, file, item)
		}
	default:
		t.Errorf("%s: %s is no object of the demo", file, head.GroupVersionKind())
	}
}

// TestServicesAreWhatAnAPIServerDelivers checks the defaults that an API server fills in and that
// names and ports are unique.
func TestServicesAreWhatAnAPIServerDelivers(t *testing.T) {
	c := load(t)
	if len(c.services) < 14 {
		t.Errorf("%d services, want at least 14", len(c.services))
	}
	serviceNet := netip.MustParsePrefix("10.96.0.0/12")
	ips, nodePorts, uids := map[string]string{}, map[int32]string{}, map[string]string{}
	for _, s := range c.services {
		name := s.Namespace + "/" + s.Name
		unique(t, "UID", uids, string(s.UID), name)
		if s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		if s.Spec.ClusterIP != corev1.ClusterIPNone {
			unique(t, "cluster IP", ips, s.Spec.ClusterIP, name)
			if ip, err := netip.ParseAddr(s.Spec.ClusterIP); err != nil || !serviceNet.Contains(ip) {
				t.Errorf("%s: cluster IP %q is not in %s", name, s.Spec.ClusterIP, serviceNet)
			}
		}
		if !slices.Equal(s.Spec.ClusterIPs, []string{s.Spec.ClusterIP}) || len(s.Spec.IPFamilies) != 1 || s.Spec.InternalTrafficPolicy == nil || s.Spec.SessionAffinity == "" {
			t.Errorf("%s: clusterIPs, ipFamilies, internalTrafficPolicy or sessionAffinity are not as an API server fills them in", name)
		}
		for _, p := range s.Spec.Ports {
			if p.Protocol == "" || p.Port == 0 || len(s.Spec.Ports) > 1 && p.Name == "" {
				t.Errorf("%s: port %+v is incomplete", name, p)
			}
			if p.NodePort != 0 {
				unique(t, "node port", nodePorts, p.NodePort, name)
			}
		}
		if port := s.Spec.HealthCheckNodePort; port != 0 {
			unique(t, "node port", nodePorts, port, name)
		}
	}
}

// TestSlicesFitPods: every endpoint that names a pod is that pod, on the node it says, in the zone
// of that node.
func TestSlicesFitPods(t *testing.T) {
	c := load(t)
	services := map[string]bool{}
	for _, s := range c.services {
		services[s.Namespace+"/"+s.Name] = true
	}
	for _, slice := range c.slices {
		name := slice.Namespace + "/" + slice.Name
		if owner := slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]; !services[owner] {
			t.Errorf("slice %s belongs to %s, which does not exist", name, owner)
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) == 0 {
				t.Errorf("slice %s: endpoint without an address", name)
				continue
			}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				c.checkPod(t, name, e)
			}
		}
	}
}

func (c *cluster) checkPod(t *testing.T, slice string, e discoveryv1.Endpoint) {
	t.Helper()
	pod := c.pods[e.TargetRef.Namespace+"/"+e.TargetRef.Name]
	switch {
	case pod == nil:
		t.Errorf("slice %s: pod %s does not exist", slice, e.TargetRef.Name)
	case pod.Status.PodIP != e.Addresses[0]:
		t.Errorf("slice %s: pod %s has address %s, endpoint %s", slice, pod.Name, pod.Status.PodIP, e.Addresses[0])
	case e.NodeName == nil || pod.Spec.NodeName != *e.NodeName:
		t.Errorf("slice %s: pod %s is on another node than the endpoint", slice, pod.Name)
	case pod.UID != e.TargetRef.UID:
		t.Errorf("slice %s: pod %s has another UID than the endpoint says", slice, pod.Name)
	case e.Zone != nil && *e.Zone != c.nodes[*e.NodeName].Labels[corev1.LabelTopologyZone]:
		t.Errorf("slice %s: pod %s is in another zone than the endpoint", slice, pod.Name)
	}
}

// TestPodsFitNodes: a pod has an address of its node's pod network, or its node's own.
func TestPodsFitNodes(t *testing.T) {
	c := load(t)
	if len(c.nodes) != 3 {
		t.Fatalf("%d nodes, want 3", len(c.nodes))
	}
	zones, addresses := map[string]string{}, map[string]string{}
	for _, n := range c.nodes {
		unique(t, "zone", zones, n.Labels[corev1.LabelTopologyZone], n.Name)
		unique(t, "pod network", addresses, n.Spec.PodCIDR, n.Name)
	}
	for name, p := range c.pods {
		n := c.nodes[p.Spec.NodeName]
		if n == nil {
			t.Errorf("pod %s is on node %q, which does not exist", name, p.Spec.NodeName)
			continue
		}
		if p.Spec.HostNetwork {
			if p.Status.PodIP != n.Status.Addresses[0].Address {
				t.Errorf("pod %s uses the network of %s, but has address %s", name, n.Name, p.Status.PodIP)
			}
			continue
		}
		unique(t, "pod address", addresses, p.Status.PodIP, name)
		if ip, err := netip.ParseAddr(p.Status.PodIP); err != nil || !netip.MustParsePrefix(n.Spec.PodCIDR).Contains(ip) {
			t.Errorf("pod %s: address %q is not in the pod network %s of %s", name, p.Status.PodIP, n.Spec.PodCIDR, n.Name)
		}
	}
}

// TestFeatures: the demo shows what services can be.
func TestFeatures(t *testing.T) {
	c := load(t)
	found := map[string]bool{}
	perService := map[string]int{}
	for _, s := range c.slices {
		perService[s.Namespace+"/"+s.Labels[discoveryv1.LabelServiceName]]++
		for _, e := range s.Endpoints {
			found["unready endpoint"] = found["unready endpoint"] || e.Conditions.Ready != nil && !*e.Conditions.Ready
			found["terminating endpoint"] = found["terminating endpoint"] || e.Conditions.Terminating != nil && *e.Conditions.Terminating
		}
	}
	ready := map[string]bool{}
	for _, s := range c.slices {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[s.Namespace+"/"+s.Labels[discoveryv1.LabelServiceName]] = true
			}
		}
	}
	for _, s := range c.services {
		name, spec := s.Namespace+"/"+s.Name, s.Spec
		for feature, has := range map[string]bool{
			"headless":                     spec.ClusterIP == corev1.ClusterIPNone,
			"ExternalName":                 spec.Type == corev1.ServiceTypeExternalName,
			"NodePort":                     spec.Type == corev1.ServiceTypeNodePort,
			"load balancer, Local policy":  len(s.Status.LoadBalancer.Ingress) > 0 && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && spec.HealthCheckNodePort > 0,
			"external IP":                  len(spec.ExternalIPs) > 0,
			"ClientIP affinity":            spec.SessionAffinity == corev1.ServiceAffinityClientIP,
			"several ports":                len(spec.Ports) > 1,
			"two slices":                   perService[name] > 1,
			"without endpoints":            spec.Type != corev1.ServiceTypeExternalName && !ready[name],
			"internal Local policy":        spec.InternalTrafficPolicy != nil && *spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
			"UDP and TCP on the same port": name == "kube-system/kube-dns",
		} {
			found[feature] = found[feature] || has
		}
	}
	for feature, has := range found {
		if !has {
			t.Errorf("the demo has no service with: %s", feature)
		}
	}
}

// unique reports a value that two objects share.
func unique[K comparable](t *testing.T, what string, seen map[K]string, value K, owner string) {
	t.Helper()
	if first, twice := seen[value]; twice {
		t.Errorf("%s %v belongs to %s and %s", what, value, first, owner)
	}
	seen[value] = owner
}
