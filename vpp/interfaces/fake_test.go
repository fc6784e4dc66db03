package interfaces

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/fib_types"
	interfaceapi "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeVPP answers the reads of this package from a model of interfaces and tables.
type fakeVPP struct {
	mu         sync.Mutex
	interfaces []RawInterface
	bridges    []uint32
	members    []l2.BridgeDomainSwIf // of each bridge domain
	ranges     []arp.ProxyArp
	routes     []fakeRoute
	// broken fails every request of that name with an unknown outcome; missing makes it
	// unsupported.
	broken, missing string
	// lookups counts route lookups, asked the requests for the table of an interface, batches the
	// calls of Do, dumps the calls of Dump.
	lookups, asked, batches, dumps int
}

// fakeRoute is one route of the model.
type fakeRoute struct {
	table  uint32
	prefix netip.Prefix
	paths  []fib_types.FibPath
}

var _ link.Caller = (*fakeVPP)(nil)

// fault returns the error that a request of this name meets.
func (v *fakeVPP) fault(name string) error {
	switch name {
	case v.broken:
		return link.ErrUnknown
	case v.missing:
		return link.ErrUnsupported
	}
	return nil
}

// Do answers route lookups and requests for the table of an interface.
func (v *fakeVPP) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.batches++
	results := make([]link.Result, len(reqs))
	for i, req := range reqs {
		switch m := req.(type) {
		case *ip.IPRouteLookup:
			v.lookups++
			results[i] = v.lookup(m)
		case *interfaceapi.SwInterfaceGetTable:
			v.asked++
			results[i] = v.tableOf(m)
		default:
			return nil, errors.New("fake: unexpected " + req.GetMessageName())
		}
	}
	return results, nil
}

// tableOf returns the table of an interface.
func (v *fakeVPP) tableOf(m *interfaceapi.SwInterfaceGetTable) link.Result {
	if err := v.fault(m.GetMessageName()); err != nil {
		return link.Result{Err: err}
	}
	for _, i := range v.interfaces {
		if i.Index == uint32(m.SwIfIndex) && !m.IsIPv6 {
			return link.Result{Reply: &interfaceapi.SwInterfaceGetTableReply{VrfID: i.Table}}
		}
	}
	return link.Result{Err: &link.RetvalError{Message: m.GetMessageName(), Retval: int32(api.INVALID_SW_IF_INDEX)}}
}

// lookup finds the longest or the exact match, as VPP does.
func (v *fakeVPP) lookup(m *ip.IPRouteLookup) link.Result {
	if err := v.fault(m.GetMessageName()); err != nil {
		return link.Result{Err: err}
	}
	asked := netip.PrefixFrom(forwarding.FromAddress(m.Prefix.Address), int(m.Prefix.Len))
	found := -1
	for k, r := range v.routes {
		covers := r.prefix.Contains(asked.Addr()) && r.prefix.Bits() <= asked.Bits()
		if m.Exact != 0 {
			covers = r.prefix == asked.Masked()
		}
		if r.table == m.TableID && covers && (found < 0 || r.prefix.Bits() > v.routes[found].prefix.Bits()) {
			found = k
		}
	}
	if found < 0 {
		return link.Result{
			Reply: &ip.IPRouteLookupReply{Retval: int32(api.NO_SUCH_ENTRY)},
			Err:   &link.RetvalError{Message: m.GetMessageName(), Retval: int32(api.NO_SUCH_ENTRY)},
		}
	}
	// The reply keeps the host bits of the question.
	prefix := m.Prefix
	prefix.Len = uint8(v.routes[found].prefix.Bits())
	return link.Result{Reply: &ip.IPRouteLookupReply{Route: ip.IPRoute{TableID: m.TableID, Prefix: prefix, Paths: v.routes[found].paths}}}
}

// Dump answers the dumps.
func (v *fakeVPP) Dump(ctx context.Context, req api.Message, each func(api.Message)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := v.fault(req.GetMessageName()); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dumps++
	for _, i := range v.interfaces {
		switch m := req.(type) {
		case *interfaceapi.SwInterfaceDump:
			each(&interfaceapi.SwInterfaceDetails{
				SwIfIndex: interface_types.InterfaceIndex(i.Index), InterfaceName: i.Name, InterfaceDevType: i.Device, Flags: flags(i),
			})
		case *ip.IPUnnumberedDump:
			if i.Unnumbered {
				each(&ip.IPUnnumberedDetails{
					SwIfIndex: interface_types.InterfaceIndex(i.Index), IPSwIfIndex: interface_types.InterfaceIndex(i.Lender),
				})
			}
		case *ip.IPAddressDump:
			for _, p := range i.Addresses {
				if uint32(m.SwIfIndex) == i.Index && m.IsIPv6 == p.Addr().Is6() {
					each(&ip.IPAddressDetails{SwIfIndex: m.SwIfIndex, Prefix: ip_types.AddressWithPrefix(forwarding.Prefix(p))})
				}
			}
		}
	}
	switch req.(type) {
	case *l2.BridgeDomainDump:
		each(&l2.BridgeDomainDetails{BdID: 9, BviSwIfIndex: anyIndex})
		for k, index := range v.bridges {
			each(&l2.BridgeDomainDetails{BdID: uint32(k), BviSwIfIndex: interface_types.InterfaceIndex(index), SwIfDetails: v.members})
		}
	case *arp.ProxyArpDump:
		for _, r := range v.ranges {
			each(&arp.ProxyArpDetails{Proxy: r})
		}
	case *arp.ProxyArpIntfcDump:
		for _, i := range v.interfaces {
			if i.ProxyARP {
				each(&arp.ProxyArpIntfcDetails{SwIfIndex: i.Index})
			}
		}
	case *ip.IPTableDump:
		seen := map[ip.IPTable]bool{}
		for _, r := range v.routes {
			table := ip.IPTable{TableID: r.table, IsIP6: r.prefix.Addr().Is6()}
			if !seen[table] {
				seen[table] = true
				each(&ip.IPTableDetails{Table: table})
			}
		}
	}
	return nil
}

// flags writes the state of an interface.
func flags(i RawInterface) interface_types.IfStatusFlags {
	var f interface_types.IfStatusFlags
	if i.AdminUp {
		f |= interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	}
	if i.LinkUp {
		f |= interface_types.IF_STATUS_API_FLAG_LINK_UP
	}
	return f
}

// up is an interface that is up.
func up(index uint32, name, device string, addresses ...string) RawInterface {
	i := RawInterface{Index: index, Name: name, Device: device, AdminUp: true, LinkUp: true}
	for _, a := range addresses {
		i.Addresses = append(i.Addresses, netip.MustParsePrefix(a))
	}
	return i
}

// route is a route of table 0.
func route(prefix string, paths ...fib_types.FibPath) fakeRoute {
	return fakeRoute{prefix: netip.MustParsePrefix(prefix), paths: paths}
}

// to is a path to an interface.
func to(index uint32) fib_types.FibPath { return fib_types.FibPath{SwIfIndex: index} }

// via is a recursive path.
func via(address string) fib_types.FibPath {
	p := fib_types.FibPath{SwIfIndex: noInterface}
	a := netip.MustParseAddr(address)
	if a.Is6() {
		p.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
		p.Nh.Address.SetIP6(a.As16())
	} else {
		p.Nh.Address.SetIP4(a.As4())
	}
	return p
}

// special is a path that leads nowhere.
func special(kind fib_types.FibPathType) fib_types.FibPath {
	return fib_types.FibPath{SwIfIndex: noInterface, TableID: noTable, Type: kind}
}
