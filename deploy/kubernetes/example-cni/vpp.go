package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"go.fd.io/govpp"
	"go.fd.io/govpp/api"
	af_packet "go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/ethernet_types"
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
	have   map[string]interface_types.InterfaceIndex // interfaces by name
}

// connect connects to VPP and reads which interfaces it has.
func connect() (*vpp, error) {
	connection, err := govpp.Connect(apiSocket)
	if err != nil {
		return nil, fmt.Errorf("connect to VPP at %s: %w", apiSocket, err)
	}
	v := &vpp{Connection: connection}
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

// makeGateway makes the interface whose addresses VPP has at the links of pods.
func (v *vpp) makeGateway(addresses []netip.Addr) error {
	if _, have := v.have[gateway]; have {
		return nil
	}
	made, err := interfaces.NewServiceClient(v).CreateLoopbackInstance(v.ctx, &interfaces.CreateLoopbackInstance{IsSpecified: true})
	if err != nil {
		return fmt.Errorf("make %s in VPP: %w", gateway, err)
	}
	for _, a := range addresses {
		if err := v.address(made.SwIfIndex, single(a)); err != nil {
			return err
		}
	}
	v.have[gateway] = made.SwIfIndex
	return v.up(made.SwIfIndex)
}

// take gives VPP a link of the kernel as its interface and returns its index.
func (v *vpp) take(link string, mac [6]byte) (interface_types.InterfaceIndex, error) {
	if index, have := v.have["host-"+link]; have {
		return index, nil
	}
	made, err := af_packet.NewServiceClient(v).AfPacketCreateV3(v.ctx, &af_packet.AfPacketCreateV3{
		Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HwAddr: mac, HostIfName: link, NumRxQueues: 1, NumTxQueues: 1,
		Flags: af_packet.AF_PACKET_API_FLAG_QDISC_BYPASS | af_packet.AF_PACKET_API_FLAG_CKSUM_GSO,
	})
	if err != nil {
		return 0, fmt.Errorf("give VPP the link %s: %w", link, err)
	}
	v.have["host-"+link] = made.SwIfIndex
	return made.SwIfIndex, v.up(made.SwIfIndex)
}

// attach gives VPP the link, behind which the addresses are. What VPP has already is set again.
func (v *vpp) attach(link string, addresses []netip.Addr) error {
	lender, have := v.have[gateway]
	if !have {
		return fmt.Errorf("VPP has no %s yet: the node process makes it", gateway)
	}
	index, err := v.take(link, vppMAC)
	if err != nil {
		return err
	}
	if _, err := interfaces.NewServiceClient(v).SwInterfaceSetUnnumbered(v.ctx, &interfaces.SwInterfaceSetUnnumbered{SwIfIndex: lender, UnnumberedSwIfIndex: index, IsAdd: true}); err != nil {
		return fmt.Errorf("let VPP work with IP at %s: %w", link, err)
	}
	for _, a := range addresses {
		neighbour := ip_neighbor.IPNeighbor{SwIfIndex: index, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, MacAddress: ethernet_types.MacAddress(macOf(link)), IPAddress: wire(a)}
		if _, err := ip_neighbor.NewServiceClient(v).IPNeighborAddDel(v.ctx, &ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: neighbour}); err != nil {
			return fmt.Errorf("name the neighbour %s of VPP: %w", a, err)
		}
		if err := v.route(single(a), a, index, true); err != nil {
			return err
		}
	}
	return nil
}

// detach takes a link and the routes to it away from VPP.
func (v *vpp) detach(link string, addresses []netip.Addr) error {
	index, have := v.have["host-"+link]
	if !have {
		return nil
	}
	for _, a := range addresses {
		if err := v.route(single(a), a, index, false); err != nil {
			return err
		}
	}
	if _, err := af_packet.NewServiceClient(v).AfPacketDelete(v.ctx, &af_packet.AfPacketDelete{HostIfName: link}); err != nil {
		return fmt.Errorf("take the link %s away from VPP: %w", link, err)
	}
	return nil
}

// route adds the only path to a network, or removes it.
func (v *vpp) route(to netip.Prefix, via netip.Addr, index interface_types.InterfaceIndex, add bool) error {
	path := fib_types.FibPath{SwIfIndex: uint32(index), Weight: 1, Nh: fib_types.FibPathNh{Address: wire(via).Un}}
	if via.Is6() {
		path.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
	}
	route := vppip.IPRoute{Prefix: ip_types.Prefix{Address: wire(to.Masked().Addr()), Len: uint8(to.Bits())}, Paths: []fib_types.FibPath{path}}
	if _, err := vppip.NewServiceClient(v).IPRouteAddDel(v.ctx, &vppip.IPRouteAddDel{IsAdd: add, Route: route}); err != nil {
		return fmt.Errorf("route of VPP to %s via %s: %w", to, via, err)
	}
	return nil
}

// address gives an interface an address that it may have already.
func (v *vpp) address(index interface_types.InterfaceIndex, address netip.Prefix) error {
	request := &interfaces.SwInterfaceAddDelAddress{SwIfIndex: index, IsAdd: true, Prefix: ip_types.AddressWithPrefix{Address: wire(address.Addr()), Len: uint8(address.Bits())}}
	if _, err := interfaces.NewServiceClient(v).SwInterfaceAddDelAddress(v.ctx, request); err != nil && !errors.Is(err, api.ADDRESS_IN_USE) {
		return fmt.Errorf("give VPP the address %s: %w", address, err)
	}
	return nil
}

// up sets an interface up.
func (v *vpp) up(index interface_types.InterfaceIndex) error {
	request := &interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP}
	if _, err := interfaces.NewServiceClient(v).SwInterfaceSetFlags(v.ctx, request); err != nil {
		return fmt.Errorf("set interface %d of VPP up: %w", index, err)
	}
	return nil
}

// wire is an address in messages of VPP.
func wire(a netip.Addr) ip_types.Address { return ip_types.NewAddress(a.AsSlice()) }
