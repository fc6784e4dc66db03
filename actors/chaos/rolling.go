package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// The two services whose pods come, stop and go all the time, as rolling updates, probes and labels
// make them. No fault touches their rows.
const (
	rolling = serviceNames + 3 // clients hold connections to it
	sharing = serviceNames + 4 // has some of its pods, and is deleted and created again
)

// isRolling reports whether a change is about a row of the two. VPP has no reason to refuse one. A
// row of which it makes a part of a change only, so that the entries have another order, is
// replaced.
func isRolling(c virtual.RowChange) bool {
	return c.At.Addr() == clusterIP(rolling) || c.At.Addr() == clusterIP(sharing)
}

// rollers is how many pods they have, holders how many connections there are. They leave the row
// room to grow and to fill up again.
const (
	rollers = 6
	holders = 12
)

// roll is the kind of step that changes one of the two services.
const roll = "roll"

// roller is the address of one of the pods.
func roller(n int) netip.Addr { return podIP(2, 100+n) }

// startRolling creates the two services.
func startRolling(k *cluster) {
	k.put(rolling, service{external: -1})
	k.put(sharing, service{external: -1})
	k.putSlice(rolling, 0, []netip.Addr{roller(0), roller(1), roller(2)})
	k.putSlice(sharing, 0, []netip.Addr{roller(1), roller(2)})
}

// roll makes one random change of the two services.
func (s *observed) roll(k *cluster, r *rand.Rand) {
	if r.IntN(4) == 0 {
		k.share(r)
		return
	}
	at := roller(r.IntN(rollers))
	now := k.slices[[2]int{rolling, 0}].without(at)
	switch r.IntN(5) {
	case 0, 1:
		now.endpoints = append(now.endpoints, at)
	case 2:
		now.unready = append(now.unready, at)
	case 3:
		now.leaving = append(now.leaving, at)
	case 4: // its pod has ended, or has lost the label
		s.forget(at)
	}
	k.slices[[2]int{rolling, 0}] = now
	k.changed(rolling)
}

// share changes the service that has pods in common.
func (k *cluster) share(r *rand.Rand) {
	if _, exists := k.services[sharing]; exists && r.IntN(4) == 0 {
		k.remove(sharing)
		k.collect(sharing)
		return
	}
	var common []netip.Addr
	for n := range rollers {
		if r.IntN(2) == 0 {
			common = append(common, roller(n))
		}
	}
	k.put(sharing, service{external: -1})
	k.putSlice(sharing, 0, common)
}

// without is the slice without an endpoint.
func (s slice) without(at netip.Addr) slice {
	rest := func(all []netip.Addr) []netip.Addr {
		return slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return a == at })
	}
	return slice{s.service, rest(s.endpoints), rest(s.unready), rest(s.leaving)}
}

// forget ends the connections to a pod that has left the slices: VPP may end them as well.
func (s *observed) forget(pod netip.Addr) {
	for id, got := range s.held {
		if got.Dst.Addr() == pod {
			delete(s.held, id)
		}
	}
}

// hold tries the connections through the rolling service, and opens those that are missing (I19).
func (s *observed) hold(w *world) {
	if s.refusing > 0 {
		clear(s.held)
		return
	}
	at := netip.AddrPortFrom(clusterIP(rolling), servicePort)
	for n := range holders {
		id := fmt.Sprint("holder ", n)
		before, isOpen := s.held[id]
		// another port each time: VPP may still have the last connection of this client
		p := simulator.Packet{In: "pod1", Src: netip.AddrPortFrom(podIP(1, 1), uint16(41000+s.opened%10000)), Dst: at, Proto: protoTCP}
		if isOpen {
			p.Src, p.Flags = before.Packet.Src, simulator.ACK
		} else {
			s.opened++
		}
		got := w.vpp.VPP.Send(p)
		back := w.vpp.VPP.Reply(got)
		whole := got.Action == simulator.Delivered && got.Dst.Port() == endpointPort && back.Action == simulator.Delivered && back.Src == p.Dst && back.Dst == p.Src
		switch {
		case isOpen && (!whole || got.Dst != before.Dst):
			w.breach("I19: a connection to %s broke, which is in the slices: %v, answer %v", before.Dst, got, back)
			delete(s.held, id)
		case !isOpen && whole:
			s.held[id] = got
			if !w.cluster.names(rolling, got.Dst.Addr()) {
				delete(s.held, id) // the agent does not know yet that the pod has gone
			}
		}
	}
}

// names reports whether an endpoint is in the slices of a service, used or not.
func (k *cluster) names(n int, at netip.Addr) bool {
	for id, s := range k.slices {
		if id[0] == n && slices.Contains(slices.Concat(s.endpoints, s.unready, s.leaving), at) {
			return true
		}
	}
	return false
}
