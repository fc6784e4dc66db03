package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// serviceNetwork6 is the twin of serviceNetwork.
var serviceNetwork6 = netip.MustParsePrefix("fd00:a60::/112")

// twin is the IPv6 address for an IPv4 address A.B.C.D: fd00:AB:C::D.
func twin(a netip.Addr) netip.Addr {
	b := a.As4()
	return netip.AddrFrom16([16]byte{0: 0xfd, 2: b[0], 3: b[1], 5: b[2], 15: b[3]})
}

// addTwins adds IPv6 to the objects of the cluster.
func addTwins(all *normalize.Objects) {
	for i, node := range all.Nodes {
		node.Addresses = append(node.Addresses, twin(netip.MustParseAddr(node.Addresses[0])).String())
		node.PodCidrs = append(node.PodCidrs, netip.PrefixFrom(twin(podIP(i+1, 0)), 64).Masked().String())
	}
	for _, s := range all.Services {
		s.ClusterIps = append(s.ClusterIps, twin(netip.MustParseAddr(s.ClusterIps[0])).String())
		s.IpFamilies = append(s.IpFamilies, messages.IPFamily_IPV6)
		for _, ingress := range s.LoadBalancer {
			s.LoadBalancer = append(s.LoadBalancer, &messages.LoadBalancerIngress{Ip: twin(netip.MustParseAddr(ingress.Ip)).String()})
		}
	}
	for _, slice := range slices.Clone(all.Slices) {
		six := &messages.EndpointSlice{
			Namespace: slice.Namespace, Name: slice.Name + "-6", Service: slice.Service, Family: messages.IPFamily_IPV6, Ports: slice.Ports,
		}
		for _, e := range slice.Endpoints {
			six.Endpoints = append(six.Endpoints, &messages.Endpoint{
				Address: twin(netip.MustParseAddr(e.Address)).String(), Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating, Node: e.Node,
			})
		}
		all.Slices = append(all.Slices, six)
	}
}

// connectIPv6 adds the IPv6 addresses of the node and its pods to VPP.
func connectIPv6(v *simulator.VPP, ended map[int]bool) error {
	err := v.AddAddress(uplink, netip.PrefixFrom(twin(netip.MustParseAddr(nodeIP)), 64))
	err = errors.Join(err, v.DefaultRoute(uplink, twin(netip.MustParseAddr("192.168.16.254"))))
	for i := range podsPerNode + 1 {
		if !ended[i] {
			err = errors.Join(err, connectPodIPv6(v, i))
		}
	}
	return err
}

// connectPodIPv6 adds the route to a pod.
func connectPodIPv6(v *simulator.VPP, n int) error {
	addr := twin(podIP(1, n))
	return v.AddRoute(simulator.Route{Prefix: netip.PrefixFrom(addr, 128), NextHop: addr, Interface: podName(n)})
}

// translations are the expected translations of CNAT. CNAT serves services only, and the endpoints
// for clients outside serve all clients.
func translations(k *cluster) map[frontend][]netip.AddrPort {
	want := map[frontend][]netip.AddrPort{}
	for at, e := range model(k, nil, nil) {
		var backends []netip.AddrPort
		for _, a := range e.remote {
			backends = append(backends, netip.AddrPortFrom(twin(a), endpointPort))
		}
		if len(backends) > 0 {
			want[netip.AddrPortFrom(twin(at.Addr()), at.Port())] = backends
		}
	}
	return want
}

// wrongTranslations compares CNAT with the model, and sends packets (I1).
func (w *world) wrongTranslations() (wrong []string) {
	if !w.cluster.ip6 {
		return nil
	}
	state, err := cnat.Read(context.Background(), w.vpp.Reader(), false, nil, nil)
	if err != nil {
		return []string{"I1: " + err.Error()}
	}
	want := translations(w.cluster)
	for _, key := range slices.SortedFunc(maps.Keys(state.Rows), rule.Key.Compare) {
		at := netip.AddrPortFrom(key.Addr, key.Port)
		if held := state.Rows[key].Backends; !slices.Equal(held, want[at]) {
			wrong = append(wrong, fmt.Sprintf("I1: CNAT leads %s to %v, want %v", at, held, want[at]))
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(want), netip.AddrPort.Compare) {
		if _, held := state.Rows[rule.Key{Addr: at.Addr(), Port: at.Port(), Proto: rule.TCP}]; !held {
			wrong = append(wrong, fmt.Sprintf("I1: CNAT lacks %s", at))
			continue
		}
		for _, c := range []client{outsider(), insider()} {
			c.src = twin(c.src)
			if got := w.probe(c, at); got.Action != simulator.Delivered || !slices.Contains(want[at], got.Dst) {
				wrong = append(wrong, fmt.Sprintf("I1: from %s: %v, want one of %v", c.from, got, want[at]))
			}
		}
	}
	return wrong
}

// stealTranslation removes a random translation.
func (w *world) stealTranslation(r *rand.Rand) {
	vpp := w.vpp.Reader()
	state, err := cnat.Read(context.Background(), vpp, false, nil, nil)
	if err != nil || len(state.Rows) == 0 {
		return // VPP is down, or has just begun
	}
	keys := slices.SortedFunc(maps.Keys(state.Rows), rule.Key.Compare)
	held := state.Rows[keys[r.IntN(len(keys))]]
	if done := cnat.Apply(context.Background(), vpp, []cnat.Op{{Verb: cnat.DelRow, Key: held.Key, ID: held.ID}}); done[0].Err != nil {
		w.breach("steal: %v", done[0].Err)
	}
	w.strayed[cnat.Renderer]++
}
