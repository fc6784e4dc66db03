package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// The rolling services: their pods come, stop and go all the time, as in rolling updates, with
// probes, and with labels. No fault touches their rows.
const (
	rolling = serviceNames + 3 // clients hold connections to it
	sharing = serviceNames + 4 // shares pods with it, and is deleted and created again
)

// isRolling reports whether a change belongs to a row of the rolling services. VPP must not refuse
// it: after a partial change the entries have another order, and the renderer replaces the row.
func isRolling(c virtual.RowChange) bool {
	return c.At.Addr() == clusterIP(rolling) || c.At.Addr() == clusterIP(sharing)
}

// rollers is the number of pods of the rolling services, holders the number of connections. The
// pods leave a row room to grow and to fill up again.
const (
	rollers = 6
	holders = 12
)

// roll is the kind of step that changes a rolling service.
const roll = "roll"

// roller is the address of a pod of the rolling services.
func roller(n int) netip.Addr { return podIP(2, 100+n) }

// startRolling creates the rolling services.
func startRolling(k *cluster) {
	k.put(rolling, service{external: -1})
	k.put(sharing, service{external: -1})
	k.putSlice(rolling, 0, []netip.Addr{roller(0), roller(1), roller(2)})
	k.putSlice(sharing, 0, []netip.Addr{roller(1), roller(2)})
}

// roll makes one random change of a rolling service.
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
	case 4: // the pod has ended, or has lost the label
		s.forget(at)
	}
	k.slices[[2]int{rolling, 0}] = now
	k.changed(rolling)
}

// share changes the service that shares pods.
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

// without returns a copy of the slice without an endpoint.
func (s slice) without(at netip.Addr) slice {
	rest := func(all []netip.Addr) []netip.Addr {
		return slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return a == at })
	}
	return slice{s.service, rest(s.endpoints), rest(s.unready), rest(s.leaving)}
}

// forget ends the connections to a pod that has left the slices, because VPP may end them.
func (s *observed) forget(pod netip.Addr) {
	for id, got := range s.held {
		if got.Dst.Addr() == pod {
			delete(s.held, id)
		}
	}
	if s.later != nil {
		s.left[pod]++
		s.later(func() { s.left[pod]-- })
	}
}

// hold tries the connections through the rolling service, and opens the missing ones (I19).
func (s *observed) hold(w *world) {
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
		got, back, whole := w.exchange(p)
		switch {
		case isOpen && (!whole || got.Dst != before.Dst):
			w.breach("I19: a connection to %s broke, which is in the slices: %v, answer %v", before.Dst, got, back)
			delete(s.held, id)
		case !isOpen && whole:
			s.held[id] = got
			if pod := got.Dst.Addr(); !w.cluster.names(rolling, pod) || s.left[pod] > 0 {
				delete(s.held, id) // VPP may not have removed the pod yet
			}
		}
	}
}

// returners is the number of clients that use their ports again.
const returners = 12

// again opens connections to the rolling service from the same ports every few seconds, and closes
// them, resets them, or forgets them after the first packet. At rest each must reach a serving
// endpoint (I20).
func (s *observed) again(w *world) {
	s.ticks++
	for n := range returners {
		if s.ticks%(3+n/3) != 0 {
			continue
		}
		p := simulator.Packet{
			In: "pod1", Src: netip.AddrPortFrom(podIP(1, 1), uint16(60000+n)), Dst: netip.AddrPortFrom(clusterIP(rolling), servicePort), Proto: protoTCP,
		}
		got, _, whole := w.exchange(p)
		if !whole {
			continue
		}
		if s.rested && !w.cluster.serves(rolling, got.Dst.Addr()) {
			w.breach("I20: a connection from a port that was used before reached %s, which does not serve", got.Dst)
		}
		for _, p.Flags = range [][]simulator.TCPFlags{{simulator.ACK, simulator.FIN | simulator.ACK}, {simulator.ACK, simulator.RST}, nil}[n%3] {
			w.exchange(p)
		}
	}
}

// serves reports whether an endpoint serves: it is ready, or terminates and still serves.
func (k *cluster) serves(n int, at netip.Addr) bool {
	for id, s := range k.slices {
		if id[0] == n && slices.Contains(slices.Concat(s.endpoints, s.leaving), at) {
			return true
		}
	}
	return false
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
