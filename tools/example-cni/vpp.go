package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"go.fd.io/govpp"
	"go.fd.io/govpp/api"
	af_packet "go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	vppip "go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/core"
)

const (
	apiSocket = "/run/vpp/api.sock"
	gateway   = "loop0" // the interface with the address of VPP
	// answerTime is the longest time that VPP may take for all that one caller asks.
	answerTime = 20 * time.Second
)

// vpp is a connection to VPP.
type vpp struct {
	*core.Connection
	ctx    context.Context
	cancel context.CancelFunc
	// of the interfaces of pods and of the host; 0 = the default table
	table uint32
	have  map[string]interface_types.InterfaceIndex // interfaces by name
}

// connect connects to VPP, in which pods have a table, and reads which interfaces it has.
func connect(table uint32) (*vpp, error) {
	connection, err := govpp.Connect(apiSocket)
	if err != nil {
		return nil, fmt.Errorf("connect to VPP at %s: %w", apiSocket, err)
	}
	v := &vpp{Connection: connection, table: table}
	if err := v.read(); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// read reads which interfaces VPP has, and starts a new answerTime.
func (v *vpp) read() error {
	if v.cancel != nil {
		v.cancel()
	}
	v.ctx, v.cancel = context.WithTimeout(context.Background(), answerTime)
	v.have = map[string]interface_types.InterfaceIndex{}
	stream, err := interfaces.NewServiceClient(v).SwInterfaceDump(v.ctx, &interfaces.SwInterfaceDump{})
	for err == nil {
		var one *interfaces.SwInterfaceDetails
		if one, err = stream.Recv(); err == nil {
			v.have[one.InterfaceName] = one.SwIfIndex
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("list interfaces of VPP: %w", err)
	}
	return nil
}

func (v *vpp) close() {
	v.cancel()
	v.Disconnect()
}

// do sends a request and reads its reply. Each reply of VPP has a field Retval.
func (v *vpp) do(about string, request, reply api.Message) error {
	err := v.Invoke(v.ctx, request, reply)
	if err == nil {
		err = api.RetvalToVPPApiError(int32(reflect.ValueOf(reply).Elem().FieldByName("Retval").Int()))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", about, err)
	}
	return nil
}

// makeGateway makes the interface with the addresses that VPP has at the links of pods.
func (v *vpp) makeGateway(addresses []netip.Addr) error {
	if _, have := v.have[gateway]; !have {
		made := new(interfaces.CreateLoopbackInstanceReply)
		if err := v.do("make "+gateway+" in VPP", &interfaces.CreateLoopbackInstance{IsSpecified: true}, made); err != nil {
			return err
		}
		v.have[gateway] = made.SwIfIndex
	}
	if err := v.enter(v.have[gateway]); err != nil {
		return err
	}
	for _, a := range addresses {
		if err := v.address(v.have[gateway], single(a)); err != nil {
			return err
		}
	}
	return v.up(v.have[gateway])
}

// take gives VPP a link of the kernel as its interface and returns its index.
func (v *vpp) take(link string, mac [6]byte) (interface_types.InterfaceIndex, error) {
	if index, have := v.have["host-"+link]; have {
		return index, nil
	}
	made := new(af_packet.AfPacketCreateV3Reply)
	err := v.do("give VPP the link "+link, &af_packet.AfPacketCreateV3{
		Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HwAddr: mac, HostIfName: link, NumRxQueues: 1, NumTxQueues: 1,
		Flags: af_packet.AF_PACKET_API_FLAG_QDISC_BYPASS | af_packet.AF_PACKET_API_FLAG_CKSUM_GSO,
	}, made)
	if err != nil {
		return 0, err
	}
	v.have["host-"+link] = made.SwIfIndex
	return made.SwIfIndex, v.up(made.SwIfIndex)
}

// attach gives VPP the link, behind which the addresses are. A link that VPP has already is
// configured once more.
func (v *vpp) attach(link string, addresses []netip.Addr) error {
	lender, have := v.have[gateway]
	if !have {
		return fmt.Errorf("VPP has no %s yet: the node process makes it", gateway)
	}
	index, err := v.take(link, vppMAC)
	if err != nil {
		return err
	}
	if err := v.enter(index); err != nil {
		return err
	}
	borrow := &interfaces.SwInterfaceSetUnnumbered{SwIfIndex: lender, UnnumberedSwIfIndex: index, IsAdd: true}
	if err := v.do("let VPP work with IP at "+link, borrow, new(interfaces.SwInterfaceSetUnnumberedReply)); err != nil {
		return err
	}
	for _, a := range addresses {
		known := &ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: ip_neighbor.IPNeighbor{
			SwIfIndex: index, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, MacAddress: macOf(link), IPAddress: wire(a),
		}}
		if err := v.do("name the neighbour "+a.String()+" of VPP", known, new(ip_neighbor.IPNeighborAddDelReply)); err != nil {
			return err
		}
		if err := v.route(v.table, single(a), a, index, true); err != nil {
			return err
		}
	}
	return nil
}

// neighbours returns the addresses of pods that VPP knows, with their links.
func (v *vpp) neighbours() (map[netip.Addr]string, error) {
	links, known := map[interface_types.InterfaceIndex]string{}, map[netip.Addr]string{}
	for name, index := range v.have {
		links[index] = strings.TrimPrefix(name, "host-")
	}
	for _, family := range []ip_types.AddressFamily{ip_types.ADDRESS_IP4, ip_types.ADDRESS_IP6} {
		stream, err := ip_neighbor.NewServiceClient(v).IPNeighborDump(v.ctx, &ip_neighbor.IPNeighborDump{SwIfIndex: ^interface_types.InterfaceIndex(0), Af: family})
		for err == nil {
			var one *ip_neighbor.IPNeighborDetails
			if one, err = stream.Recv(); err == nil {
				if address, ok := netip.AddrFromSlice(one.Neighbor.IPAddress.ToIP()); ok {
					known[address.Unmap()] = links[one.Neighbor.SwIfIndex]
				}
			}
		}
		if !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("list neighbours of VPP: %w", err)
		}
	}
	return known, nil
}

// detach takes a link and the routes to it away from VPP.
func (v *vpp) detach(link string, addresses []netip.Addr) error {
	index, have := v.have["host-"+link]
	if !have {
		return nil
	}
	for _, a := range addresses {
		if err := v.route(v.table, single(a), a, index, false); err != nil {
			return err
		}
	}
	return v.do("take the link "+link+" away from VPP", &af_packet.AfPacketDelete{HostIfName: link}, new(af_packet.AfPacketDeleteReply))
}

// makeTable makes the table of pods, which has these networks. Each of the two tables leads to the
// other one for all that it does not have.
func (v *vpp) makeTable(pods []netip.Prefix) error {
	if v.table == 0 {
		return nil
	}
	for _, p := range pods {
		table := vppip.IPTable{TableID: v.table, IsIP6: p.Addr().Is6(), Name: "pods"}
		if err := v.do("make the table of pods in VPP", &vppip.IPTableAddDel{IsAdd: true, Table: table}, new(vppip.IPTableAddDelReply)); err != nil {
			return err
		}
		if err := v.lead(v.table, everywhere(p.Addr())[0], 0); err != nil {
			return err
		}
		if err := v.lead(0, p, v.table); err != nil {
			return err
		}
	}
	return nil
}

// enter puts an interface into the table of pods.
func (v *vpp) enter(index interface_types.InterfaceIndex) error {
	if v.table == 0 {
		return nil
	}
	for _, six := range []bool{false, true} {
		request := &interfaces.SwInterfaceSetTable{SwIfIndex: index, IsIPv6: six, VrfID: v.table}
		err := v.do(fmt.Sprintf("put interface %d into the table of pods", index), request, new(interfaces.SwInterfaceSetTableReply))
		// an interface with an address is there already, and a family without pods has no table
		if err != nil && !errors.Is(err, api.ADDRESS_FOUND_FOR_INTERFACE) && !errors.Is(err, api.NO_SUCH_FIB) {
			return err
		}
	}
	return nil
}

// lead lets a table look for a network in another one.
func (v *vpp) lead(table uint32, to netip.Prefix, next uint32) error {
	path := fib_types.FibPath{SwIfIndex: ^uint32(0), TableID: next, Weight: 1}
	return v.change(table, to, path, fmt.Sprintf("route of VPP from table %d to %s in table %d", table, to, next), true)
}

// route adds the only path to a network, or removes it.
func (v *vpp) route(table uint32, to netip.Prefix, via netip.Addr, index interface_types.InterfaceIndex, add bool) error {
	path := fib_types.FibPath{SwIfIndex: uint32(index), Weight: 1, Nh: fib_types.FibPathNh{Address: wire(via).Un}}
	return v.change(table, to, path, fmt.Sprintf("route of VPP to %s via %s", to, via), add)
}

// change adds the only path to a network in a table, or removes it.
func (v *vpp) change(table uint32, to netip.Prefix, path fib_types.FibPath, about string, add bool) error {
	if to.Addr().Is6() {
		path.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
	}
	prefix := ip_types.Prefix{Address: wire(to.Masked().Addr()), Len: uint8(to.Bits())}
	route := vppip.IPRoute{TableID: table, Prefix: prefix, Paths: []fib_types.FibPath{path}}
	return v.do(about, &vppip.IPRouteAddDel{IsAdd: add, Route: route}, new(vppip.IPRouteAddDelReply))
}

// address gives an interface an address that it may have already.
func (v *vpp) address(index interface_types.InterfaceIndex, address netip.Prefix) error {
	request := &interfaces.SwInterfaceAddDelAddress{
		SwIfIndex: index, IsAdd: true, Prefix: ip_types.AddressWithPrefix{Address: wire(address.Addr()), Len: uint8(address.Bits())},
	}
	err := v.do("give VPP the address "+address.String(), request, new(interfaces.SwInterfaceAddDelAddressReply))
	// 25.10 answers the first one for IPv4 and the second one for IPv6.
	if errors.Is(err, api.ADDRESS_IN_USE) || errors.Is(err, api.DUPLICATE_IF_ADDRESS) {
		return nil
	}
	return err
}

// up sets an interface up.
func (v *vpp) up(index interface_types.InterfaceIndex) error {
	request := &interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP}
	return v.do(fmt.Sprintf("set interface %d of VPP up", index), request, new(interfaces.SwInterfaceSetFlagsReply))
}

// wire is an address in messages of VPP.
func wire(a netip.Addr) ip_types.Address { return ip_types.NewAddress(a.AsSlice()) }
