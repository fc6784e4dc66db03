package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Where pods leave the node, and how they reach those of the other node if they leave with another
// address.
const (
	uplink      = "uplink0"
	overlay     = "vxlan_tunnel0"
	overlayPort = 4789
	loopbackIP  = "10.1.1.254" // of NAT: the last address of the node's pod network
)

// withSNAT reports whether dynamic SNAT is configured in the world of a seed: in every other one.
func withSNAT(seed uint64) bool { return rand.New(rand.NewPCG(seed, 5)).IntN(2) == 0 }

// snatSettings are the settings of the troupe.
func (w *world) snatSettings() layers.SNAT {
	return layers.SNAT{Enabled: w.snat, OverlayPorts: []string{fmt.Sprint(overlayPort, "/UDP")}}
}

// connectOverlay leads to the pods of the other node through a tunnel: without one SNAT would
// translate what they are sent. The tunnel does not lead to the network of this node's pods: one
// without an interface would not be missed.
func connectOverlay(v *simulator.VPP) error {
	_, err := v.AddInterface(overlay, []netip.Prefix{netip.MustParsePrefix("10.200.0.1/24")}, true)
	for _, pods := range []string{"10.1.2.0/24", "10.1.128.0/17"} {
		// the second one is for the ageing service
		to := simulator.Route{Prefix: netip.MustParsePrefix(pods), Interface: overlay, NextHop: netip.MustParseAddr("10.200.0.2")}
		err = errors.Join(err, v.AddRoute(to))
	}
	return err
}

// exempt are the identity mappings that SNAT needs: addresses that no pod has.
func (w *world) exempt() []rule.Key {
	if !w.snat {
		return nil
	}
	node := netip.MustParseAddr(nodeIP)
	return []rule.Key{{Addr: node}, {Addr: node, Port: overlayPort, Proto: simulator.ProtoUDP}, {Addr: netip.MustParseAddr(loopbackIP)}}
}

// wrongSNAT compares NAT addresses, and the roles of all interfaces but those of pods, with what
// SNAT wants (I1): packets are translated to the address of the node where they leave through the
// uplink, and nowhere else.
func (w *world) wrongSNAT(state *nat44.State) (wrong []string) {
	pool := []netip.Addr{netip.MustParseAddr(loopbackIP)} // for clashes
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
// and to one of this node (I1): only the first one leaves with the address of the node, and only
// with SNAT. All of them are answered.
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

// replaceOverlay has the tunnel end and another one take its place, as when a CNI is configured
// anew. SNAT may be refused meanwhile, which ends the connections that it has translated.
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
// command line might. No packet through the interface is translated until the drift check finds it.
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
		held = held[max(0, len(held)-2):] // those of SNAT, if there are any
	}
	op := held[r.IntN(len(held))]
	if done := nat44.Apply(context.Background(), vpp, []nat44.Op{op}); done[0].Err != nil {
		w.breach("steal: %v", done[0].Err)
	}
	clear(w.observed.open)
	clear(w.observed.held)
	w.strayed["nat44"]++
}
