package sessions

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// Live are the numbers of live sessions of a backend, by the frontend and protocol that clients
// use.
type Live map[Served]int

// Served is what clients of a session send to.
type Served struct {
	Frontend netip.AddrPort
	// Protocol is the number of IANA.
	Protocol uint8
}

// CountLive counts the live sessions of backends with a few dumps, each of which costs VPP a pass
// over its sessions. The first dump finds the backends without sessions. Of the others CountLive
// counts the ones whose turn is next: turn is the address that goes first, and the result has the
// turn of the next call. Backends that were not reached are not in the result.
func CountLive(ctx context.Context, c link.Caller, backends []netip.AddrPort, turn netip.Addr, dumps int) (map[netip.AddrPort]Live, netip.Addr, error) {
	users, err := readUsers(ctx, c)
	if err != nil {
		return nil, turn, err
	}
	busy := make(map[netip.Addr]bool, len(users))
	for _, u := range users {
		busy[netip.AddrFrom4(u.Addr)] = true
	}
	found := map[netip.AddrPort]Live{}
	var addrs []netip.Addr
	for _, b := range backends {
		if busy[b.Addr()] {
			addrs = append(addrs, b.Addr())
		} else {
			found[b] = Live{}
		}
	}
	slices.SortFunc(addrs, func(a, b netip.Addr) int {
		if before, after := a.Less(turn), b.Less(turn); before != after {
			return map[bool]int{true: 1, false: -1}[before]
		}
		return a.Compare(b)
	})
	addrs = slices.Compact(addrs)
	reached := addrs[:min(len(addrs), max(dumps-1, 1))]
	for _, addr := range reached {
		live := map[netip.AddrPort]Live{}
		err := c.Dump(ctx, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: addr.As4()}, func(msg api.Message) {
			d, ok := msg.(*nat44_ed.Nat44UserSessionV3Details)
			if !ok || d.IsTimedOut {
				return
			}
			f := flowOf(d)
			if live[f.Backend] == nil {
				live[f.Backend] = Live{}
			}
			live[f.Backend][Served{f.Frontend, f.Protocol}]++
		})
		if err != nil {
			return found, addr, fmt.Errorf("dump NAT sessions of %s: %w", addr, err)
		}
		for _, b := range backends {
			if b.Addr() == addr {
				found[b] = live[b]
			}
		}
	}
	if len(reached) < len(addrs) {
		return found, addrs[len(reached)], nil
	}
	return found, netip.Addr{}, nil
}
