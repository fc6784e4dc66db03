package interfaces

import (
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// fromAddress reads an address of the binary API.
func fromAddress(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(a.Un.GetIP6())
	}
	return netip.AddrFrom4(a.Un.GetIP4())
}

// toPrefix writes a prefix for the binary API.
func toPrefix(p netip.Prefix) ip_types.Prefix {
	out := ip_types.Prefix{Len: uint8(p.Bits())}
	if p.Addr().Is4() {
		out.Address.Un.SetIP4(p.Addr().As4())
		return out
	}
	out.Address.Af = ip_types.ADDRESS_IP6
	out.Address.Un.SetIP6(p.Addr().As16())
	return out
}

// nextHop returns the address a path goes to; invalid when it has none.
func nextHop(p *fib_types.FibPath) netip.Addr {
	var a netip.Addr
	switch p.Proto {
	case fib_types.FIB_API_PATH_NH_PROTO_IP4:
		a = netip.AddrFrom4(p.Nh.Address.GetIP4())
	case fib_types.FIB_API_PATH_NH_PROTO_IP6:
		a = netip.AddrFrom16(p.Nh.Address.GetIP6())
	}
	if !a.IsValid() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}
