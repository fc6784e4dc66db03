package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// unreachable is a route that answers with ICMP: of the network of the VIP, or of the VIP alone.
func (n *cnatNode) unreachable(alone bool) *ip.IPRouteAddDel {
	n.Helper()
	return n.covering(unreachable, alone)
}

// covering is a route of the network of the VIP, or of the VIP alone.
func (n *cnatNode) covering(kind fib_types.FibPathType, alone bool) *ip.IPRouteAddDel {
	n.Helper()
	path := via(none, [4]byte{})
	path.Type, path.Proto = kind, fib_types.FIB_API_PATH_NH_PROTO_IP4
	network := netip.MustParsePrefix("10.96.0.0/16")
	if n.ip6 {
		path.Proto, network = fib_types.FIB_API_PATH_NH_PROTO_IP6, netip.MustParsePrefix("fd00:96::/112")
	}
	if alone {
		network = netip.PrefixFrom(netip.MustParseAddr(n.vip), netip.MustParseAddr(n.vip).BitLen())
	}
	return route(n.T, network.String(), path)
}

// realRow is a row of a VIP that Kubernetes has not allocated.
func (n *cnatNode) realRow() *cnat.Row {
	return &cnat.Row{
		Key: rule.Key{Addr: netip.MustParseAddr(n.vip), Port: 80, Proto: rule.TCP}, RealIP: true, Backends: []netip.AddrPort{hostPort(n.second, 8080)},
	}
}

// put has the package send the row of realRow.
func (n *cnatNode) put() error {
	n.Helper()
	return n.putRow(n.realRow())
}

// putRow has the package send a row.
func (n *cnatNode) putRow(row *cnat.Row) error {
	n.Helper()
	state, err := cnat.Read(n.Context(), n.link, true, nil, nil)
	if err != nil {
		n.Fatal(err)
	}
	for _, r := range cnat.Apply(n.Context(), n.link, cnat.Diff(state, &cnat.Want{SNAT: state.SNAT, Rows: map[rule.Key]cnat.Row{row.Key: *row}, Partial: true}, false)) {
		err = errors.Join(err, r.Err)
	}
	return err
}

// cnatRealIPs are cases of addresses that Kubernetes has not allocated.
var cnatRealIPs = func() (cases []contractCase) {
	for _, c := range []struct {
		name string
		run  func(n *cnatNode)
	}{
		{"is not served below a route that answers with ICMP, where VPP would crash", func(n *cnatNode) {
			n.expect(n.T, ok, n.unreachable(false))
			err := n.put()
			if !n.version(n).cnat.crashesBelowICMP {
				if err != nil {
					n.Error(err)
				}
				n.exchange(n.first, rule.TCP, hostPort(n.pod, 40000), hostPort(n.vip, 80), n.other, netip.MustParseAddr(n.pod))
				return
			}
			if !errors.Is(err, cnat.ErrBelowICMP) {
				n.Errorf("the row is sent: %v", err)
			}
			// as package routes has it, which may take it away
			n.expect(n.T, ok, n.unreachable(true))
			if err := n.put(); !errors.Is(err, cnat.ErrBelowICMP) {
				n.Errorf("the row is sent: %v", err)
			}
		}},
		{"is not served below a route to VPP itself, which may become one", func(n *cnatNode) {
			n.expect(n.T, ok, n.covering(toLocal, false))
			if err := n.put(); errors.Is(err, cnat.ErrBelowICMP) != n.version(n).cnat.crashesBelowICMP {
				n.Error(err)
			}
			n.expect(n.T, ok, n.unreachable(false))
		}},
		{"a route of its own that comes later is safe", func(n *cnatNode) {
			if err := n.put(); err != nil {
				n.Error(err)
			}
			n.expect(n.T, ok, n.unreachable(true))
			n.exchange(n.first, rule.TCP, hostPort(n.pod, 40000), hostPort(n.vip, 80), n.other, netip.MustParseAddr(n.pod))
			n.lost(n.first, rule.TCP, hostPort(n.pod, 40001), hostPort(n.vip, 81))
			gone := n.unreachable(true)
			gone.IsAdd = false
			n.expect(n.T, ok, gone)
			n.exchange(n.first, rule.TCP, hostPort(n.pod, 40002), hostPort(n.vip, 80), n.other, netip.MustParseAddr(n.pod))
		}},
		{"a route that answers with ICMP and comes later", func(n *cnatNode) {
			if err := n.put(); err != nil {
				n.Error(err)
			}
			if n.version(n).cnat.crashesBelowICMP {
				realvpp.NewRaw(n, n.Socket()).Send(n, n.unreachable(false))
				n.WaitDead(n)
				return
			}
			n.expect(n.T, ok, n.unreachable(false))
			n.exchange(n.first, rule.TCP, hostPort(n.pod, 40000), hostPort(n.vip, 80), n.other, netip.MustParseAddr(n.pod))
		}},
		{"an endpoint that has its address answers", func(n *cnatNode) {
			row := n.realRow()
			row.Addr, row.Port, row.Backends = netip.MustParseAddr(n.second), 30080, []netip.AddrPort{hostPort(n.pod, 8080)}
			if err := n.putRow(row); err != nil {
				n.Error(err)
			}
			n.serve(rule.TCP, n.vip, 80, nil, n.second)
			n.exchange(n.first, rule.TCP, hostPort(n.pod, 40000), hostPort(n.vip, 80), n.other, netip.MustParseAddr(n.pod))
		}},
		{"its own route goes from below one that answers with ICMP", func(n *cnatNode) {
			n.expect(n.T, ok, n.unreachable(true))
			if err := n.put(); err != nil {
				n.Error(err)
			}
			n.expect(n.T, ok, n.unreachable(false))
			gone := n.unreachable(true)
			gone.IsAdd = false
			if n.version(n).cnat.crashesBelowICMP {
				realvpp.NewRaw(n, n.Socket()).Send(n, gone)
				n.WaitDead(n)
				return
			}
			n.expect(n.T, ok, gone)
			n.exchange(n.first, rule.TCP, hostPort(n.pod, 40000), hostPort(n.vip, 80), n.other, netip.MustParseAddr(n.pod))
		}},
	} {
		for _, f := range families {
			name := fmt.Sprintf("cnat real address/IPv4/%s", c.name)
			if f.ip6 {
				name = fmt.Sprintf("cnat real address/IPv6/%s", c.name)
			}
			cases = append(cases, contractCase{name, func(t *testing.T, v *rig) { c.run(newCNATNode(t, v, f)) }})
		}
	}
	return cases
}()
