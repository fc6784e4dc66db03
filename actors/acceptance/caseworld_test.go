package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// objects are changes of a cluster.
type objects struct {
	services []*messages.Service
	slices   []*messages.EndpointSlice
	deleted  kubetest.Keys
}

// convert normalises API objects as the sources do.
func (r *run) convert(services []*corev1.Service, endpointSlices []*discoveryv1.EndpointSlice) *objects {
	r.Helper()
	o := &objects{}
	for i := range services {
		s, problems := normalize.Service("case", services[i])
		if len(problems) > 0 {
			r.Errorf("service: %v", problems)
		}
		o.services = append(o.services, s)
	}
	for i := range endpointSlices {
		s, problems := normalize.EndpointSlice("case", endpointSlices[i])
		if len(problems) > 0 {
			r.Errorf("slice: %v", problems)
		}
		o.slices = append(o.slices, s)
	}
	return o
}

// put makes all changes at once.
func (o *objects) put(s *kube.Store) {
	for _, one := range o.changes() {
		one(s)
	}
}

func (o *objects) changes() []func(*kube.Store) {
	var all []func(*kube.Store)
	for _, one := range o.services {
		all = append(all, func(s *kube.Store) { s.Set(one, nil) })
	}
	for _, one := range o.slices {
		all = append(all, func(s *kube.Store) { s.Set(one, nil) })
	}
	for _, key := range o.deleted.Services {
		all = append(all, func(s *kube.Store) { s.Delete(normalize.KindService, key) })
	}
	for _, key := range o.deleted.EndpointSlices {
		all = append(all, func(s *kube.Store) { s.Delete(normalize.KindEndpointSlice, key) })
	}
	return all
}

// shuffled are the changes one by one, in any order.
func (o *objects) shuffled(random *rand.Rand) []func(*kube.Store) {
	all := o.changes()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// setCaseNode replaces the node, through the same normalisation that a real Node object takes.
func (r *run) setCaseNode(n kubetest.Node) {
	r.Helper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	for _, text := range n.Addresses {
		object.Status.Addresses = append(object.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: text})
	}
	self, problems := normalize.Node("case", object)
	if len(problems) > 0 || self == nil {
		r.Fatalf("node: %v", problems)
	}
	if self.GetZone() != n.Zone || n.Name != r.Node || !slices.Equal(n.Addresses, r.self.Addresses) {
		r.Fatalf("%s: this test does not change name and addresses of a node", r.step)
	}
	r.setNode(self)
}

// connect makes interfaces for the endpoints on this node, before the troupe hears of them, as a
// CNI does.
func (r *run) connect(o *objects) {
	r.Helper()
	r.built = 0
	here := map[netip.Addr]bool{}
	for _, slice := range o.slices {
		for _, e := range slice.GetEndpoints() {
			if a, err := netip.ParseAddr(e.GetAddress()); err == nil && a.Is4() {
				here[a] = here[a] || e.GetNode() == r.Node
			}
		}
	}
	for a, local := range here {
		switch {
		case local && r.places.pods[a] == "":
			r.places.addPod(r.T, a)
			r.built++
		case !local && r.places.pods[a] != "":
			r.places.removePod(r.T, a)
			r.built++
		}
	}
}

// chooseClients makes the clients of the packets: the clients of the file, and one for each place
// without a client.
func (r *run) chooseClients() {
	r.Helper()
	r.used, r.vips = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	local, outcomes := map[netip.Addr]bool{}, []*kubetest.Outcome{&r.file.Outcome}
	note := func(slices []*discoveryv1.EndpointSlice) {
		for _, s := range slices {
			for _, e := range s.Endpoints {
				for _, text := range e.Addresses {
					if a, err := netip.ParseAddr(text); err == nil {
						r.used[a] = true
						local[a] = true
					}
				}
			}
		}
	}
	note(r.file.EndpointSlices)
	for i := range r.file.Steps {
		note(r.file.Steps[i].Apply.EndpointSlices)
		outcomes = append(outcomes, &r.file.Steps[i].Outcome)
	}
	for _, o := range outcomes {
		for _, row := range o.Expect {
			vip := r.target(row.Frontend).at.Addr()
			r.used[vip], r.vips[vip] = true, !r.places.nodes[vip]
		}
		for _, p := range o.Packets {
			src := netip.MustParseAddr(p.Src)
			r.used[src] = true
			if src.Is4() && r.class(src) == classPod && !local[src] {
				r.client(src) // a pod that is no endpoint: a client on this node
			}
		}
	}
	r.pod = r.unused("10.200.77.10")
	for _, network := range r.Serving.ClusterCIDRs {
		if network.Addr().Is4() && !network.Contains(r.pod) {
			r.pod = r.unused(network.Addr().Next().String())
		}
	}
	r.client(r.pod)
	r.remote = r.unused("198.51.100.10")
}

// unused is the first address from this one on that the case does not mention.
func (r *run) unused(from string) netip.Addr {
	a := netip.MustParseAddr(from)
	for r.used[a] || r.places.nodes[a] {
		a = a.Next()
	}
	r.used[a] = true
	return a
}

// leaveBehind has an earlier run of the troupe put the rows into VPP that are found at the start. A
// row that a service of the case has comes from this service; others come from services that are
// gone.
func (r *run) leaveBehind(now *objects) {
	r.Helper()
	current := r.Source
	current.Change(now.put)
	owners := map[string]*messages.Service{}
	ports := map[string]string{}
	for _, in := range current.Services() {
		for _, f := range service.Resolve(in, r.context, r.Serving).GetFrontends() {
			owners[service.FrontendText(f)], ports[service.FrontendText(f)] = in.GetService(), f.GetPortName()
		}
	}
	r.Source = actorstest.NewSource(r.Node)
	r.setCaseNode(r.self)
	for a := range r.places.known {
		r.client(a)
	}
	then := &objects{}
	for i, row := range r.file.Preexisting {
		if row.Kind != "clusterIP" || row.Action != forward {
			r.Fatalf("this test cannot leave behind %+v", row)
		}
		to := r.target(row.Frontend)
		s := &messages.Service{Namespace: "earlier", Name: fmt.Sprint("service-", i), Created: 1}
		if owner := owners[row.Frontend]; owner != nil {
			s = &messages.Service{Namespace: owner.GetNamespace(), Name: owner.GetName(), Created: owner.GetCreated()}
		}
		s.Uid, s.ClusterIps, s.IpFamilies = s.GetName(), []string{to.at.Addr().String()}, []messages.IPFamily{messages.IPFamily_IPV4}
		s.AffinitySeconds = row.AffinitySeconds
		port := &messages.ServicePort{Name: ports[row.Frontend], Protocol: messages.Protocol(to.proto), Port: uint32(to.at.Port())}
		s.Ports = []*messages.ServicePort{port}
		then.services = append(then.services, s)
		for j, text := range row.Endpoints {
			e := netip.MustParseAddrPort(text)
			where := ""
			if r.places.pods[e.Addr()] != "" {
				where = r.Node
			}
			then.slices = append(then.slices, &messages.EndpointSlice{
				Namespace: s.GetNamespace(), Name: fmt.Sprint(s.GetName(), "-", j), Service: s.GetName(), Family: messages.IPFamily_IPV4,
				Ports:     []*messages.EndpointPort{{Name: port.GetName(), Protocol: port.GetProtocol(), Port: uint32(e.Port())}},
				Endpoints: []*messages.Endpoint{{Address: e.Addr().String(), Ready: true, Serving: true, Node: where}},
			})
		}
	}
	r.Source.Change(then.put)
	r.Start()
	r.settled()
	if found := r.compareRows(r.file.Preexisting, r.rows()); len(found) > 0 {
		r.Fatalf("the earlier run left something else: %v", found)
	}
	r.Stop()
	r.before, r.Source = r.rows(), current
}
