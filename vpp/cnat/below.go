package cnat

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// below returns the addresses with which VPP before 26.06 would crash, each with the covering route
// that answers with ICMP, or may come to do so. Kubernetes has allocated none of the addresses. A
// route of the address itself protects it, unless that is such a route as well: package routes
// deletes its own.
func below(ctx context.Context, c link.Caller, addresses []netip.Addr) (map[netip.Addr]netip.Prefix, error) {
	// each address itself, and the entry that covers it without a route of its own
	var lookups []netip.Prefix
	for _, addr := range addresses {
		own := netip.PrefixFrom(addr, addr.BitLen())
		lookups = append(lookups, own, netip.PrefixFrom(addr, addr.BitLen()-1).Masked())
	}
	winners, err := forwarding.Covering(ctx, c, lookups)
	if err != nil {
		return nil, err
	}
	found := map[netip.Addr]netip.Prefix{}
	for i, addr := range addresses {
		own, cover := winners[2*i], winners[2*i+1]
		if err := cmp.Or(own.Err, cover.Err); err != nil {
			if _, answered := link.Retval(err); !answered {
				return nil, err
			}
		}
		if protected := own.Prefix == lookups[2*i] && !own.ICMP; cover.ICMP && !protected {
			found[addr] = cover.Prefix
		}
	}
	return found, nil
}

// refuseBelow refuses the rows with which VPP would crash.
func refuseBelow(ctx context.Context, c link.Caller, results []OpResult) error {
	var addresses []netip.Addr
	for i := range results {
		if op := &results[i].Op; op.unsafe() {
			addresses = append(addresses, op.Key.Addr)
		}
	}
	found, err := below(ctx, c, addresses)
	if err != nil {
		return err
	}
	for i := range results {
		r := &results[i]
		if network, is := found[r.Op.Key.Addr]; is && r.Op.unsafe() {
			r.Op.Below = network
			r.Err = fmt.Errorf("%s: %w: %s", r.Op.Describe(), ErrBelowICMP, network)
		}
	}
	return nil
}

// unsafe reports whether the operation crashes VPP below a route that answers with ICMP.
func (op *Op) unsafe() bool { return op.Verb == PutRow && op.Row.RealIP && !op.Newer }
