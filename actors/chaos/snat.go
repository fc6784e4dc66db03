package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Interfaces and addresses of SNAT. Pods of this node reach pods of the other node through the
// overlay, with their own addresses.
const (
	uplink      = "uplink0"
	overlay     = "vxlan_tunnel0"
	overlayPort = 4789
	loopbackIP  = "10.1.1.254" // the twice-NAT address: the last address of the node's pod network
)

// connectOverlay adds a tunnel to the pods of the other node: without it SNAT would translate
// packets to them. The tunnel does not cover the pod network of this node, so that a pod without an
// interface shows.
func connectOverlay(v *simulator.VPP) error {
	_, err := v.AddInterface(overlay, []netip.Prefix{netip.MustParsePrefix("10.200.0.1/24")}, true)
	for _, pods := range []string{"10.1.2.0/24", "10.1.128.0/17"} {
		// the second network has the endpoints of the ageing service
		to := simulator.Route{Prefix: netip.MustParsePrefix(pods), Interface: overlay, NextHop: netip.MustParseAddr("10.200.0.2")}
		err = errors.Join(err, v.AddRoute(to))
	}
	return err
}

// exempt are the identity mappings that SNAT needs: addresses that are not addresses of pods.
func (w *world) exempt() []rule.Key {
	if !w.snat {
		return nil
	}
	node := netip.MustParseAddr(nodeIP)
	return []rule.Key{{Addr: node}, {Addr: node, Port: overlayPort, Proto: simulator.ProtoUDP}, {Addr: netip.MustParseAddr(loopbackIP)}}
}

// wrongSNAT checks NAT addresses, and the roles of uplink and overlay (I1): with SNAT, VPP
// translates exactly the packets that leave through the uplink, to the address of the node.
func (w *world) wrongSNAT(state *nat44.State) (wrong []string) {
	pool := []netip.Addr{netip.MustParseAddr(loopbackIP)} // without SNAT, for clashes of ports
	if w.snat {
		pool = []netip.Addr{netip.MustParseAddr(nodeIP)}
	}
	if !slices.Equal(state.Pool, pool) {
		wrong = append(wrong, fmt.Sprintf("I1: NAT addresses are %v, want %v", state.Pool, pool))
	}
	for name, index := range w.vpp.VPP.Interfaces() {
		if want := w.snat && name == uplink; state.Output[index] != want {
			wrong = append(wrong, fmt.Sprintf("I1: NAT translates what leaves through %s: %t, want %t", name, !want, want))
		}
		if roles := state.Roles[index]; (name == uplink && !w.snat || name == overlay) && roles != nat44.Both {
			wrong = append(wrong, fmt.Sprintf("I1: interface %s has the roles %v", name, roles))
		}
	}
	return wrong
}

// wrongEgress sends packets of a pod to a host outside of the cluster, to a pod of the other node
// and to a pod of this node (I1). All answers must arrive. With SNAT only the first packet has the
// address of the node, without SNAT no packet has it.
func (w *world) wrongEgress() (wrong []string) {
	pod := insider()
	for _, to := range []netip.Addr{netip.MustParseAddr("198.51.100.7"), podIP(2, 0), podIP(1, podsPerNode)} {
		from := pod.src
		if w.snat && to.As4()[0] != from.As4()[0] {
			from = netip.MustParseAddr(nodeIP)
		}
		at := netip.AddrPortFrom(to, endpointPort)
		got := w.probe(pod, at)
		back := w.vpp.VPP.Reply(got)
		if got.Action != simulator.Delivered || got.Dst != at || got.Src.Addr() != from || back.Action != simulator.Delivered || back.Dst != got.Packet.Src {
			wrong = append(wrong, fmt.Sprintf("I1: from %s to %s: %v, want it to leave as %s; answer: %v", pod.from, at, got, from, back))
		}
	}
	return wrong
}

// replaceOverlay deletes the tunnel and adds another one, as a CNI does after a change of its
// settings. VPP may refuse SNAT meanwhile, which ends translated connections.
func (w *world) replaceOverlay(r *rand.Rand) {
	if !w.snat || w.detached {
		return
	}
	w.detached = true
	w.withVPP(func(v *simulator.VPP) error { return v.DeleteInterface(overlay) })
	w.observed.interrupted = true
	w.injector.count("overlay ended")
	w.later(seconds(r, 6), func() {
		w.detached = false
		w.withVPP(connectOverlay)
	})
}

// stealSettings removes the roles of an interface or the NAT address, as an operator at VPP's
// command line might. VPP translates no packet of the interface until a drift check finds it.
func (w *world) stealSettings(r *rand.Rand) {
	vpp := w.vpp.Reader()
	state, err := nat44.Read(context.Background(), vpp)
	if err != nil {
		return // VPP is down, or has just begun
	}
	var held []nat44.Op
	for _, index := range slices.Sorted(maps.Keys(state.Roles)) {
		held = append(held, nat44.Op{Verb: nat44.DelRoles, Interface: index, Roles: state.Roles[index]})
	}
	for index := range state.Output {
		held = append(held, nat44.Op{Verb: nat44.DelOutput, Interface: index})
	}
	for _, addr := range state.Pool {
		held = append(held, nat44.Op{Verb: nat44.DelPool, Addr: addr})
	}
	if len(held) == 0 {
		return
	}
	if r.IntN(2) == 0 {
		held = held[max(0, len(held)-2):] // the settings of SNAT, if there are any
	}
	op := held[r.IntN(len(held))]
	if done := nat44.Apply(context.Background(), vpp, []nat44.Op{op}); done[0].Err != nil {
		w.breach("steal: %v", done[0].Err)
	}
	clear(w.observed.open)
	clear(w.observed.held)
	w.strayed[nat44.Renderer]++
}
