package simulator

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// step is a request with the return code that VPP gives.
type step struct {
	req  api.Message
	want int32
}

// simpleVIP is the external address of the simple mappings of these tests.
var simpleVIP = netip.MustParseAddr("10.96.0.9")

// noIf is the "no interface" index.
const noIf = interface_types.InterfaceIndex(pool.None)

// simple returns a message for a simple mapping of 10.96.0.9:80/tcp.
func simple(add bool, flags nat_types.NatConfigFlags, backend string) *nat44_ed.Nat44AddDelStaticMappingV2 {
	b := map[string][4]byte{"a": backendA.As4(), "b": backendB.As4()}[backend]
	return &nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: add, Flags: flags, ExternalIPAddress: [4]byte{10, 96, 0, 9}, ExternalPort: 80, Protocol: ProtoTCP,
		LocalIPAddress: b, LocalPort: 8080, ExternalSwIfIndex: noIf,
	}
}

// identity returns a message for an identity mapping of 10.0.0.7:4789/udp.
func identity(add bool, flags nat_types.NatConfigFlags, vrf uint32) *nat44_ed.Nat44AddDelIdentityMapping {
	return &nat44_ed.Nat44AddDelIdentityMapping{
		IsAdd: add, Flags: flags, IPAddress: [4]byte{10, 0, 0, 7}, Port: 4789, Protocol: ProtoUDP,
		SwIfIndex: noIf, VrfID: vrf,
	}
}

func role(add bool, flags nat_types.NatConfigFlags, index uint32) *nat44_ed.Nat44InterfaceAddDelFeature {
	return &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: add, Flags: flags, SwIfIndex: interface_types.InterfaceIndex(index)}
}

func output(add bool, index uint32) *nat44_ed.Nat44EdAddDelOutputInterface {
	return &nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: add, SwIfIndex: interface_types.InterfaceIndex(index)}
}

func address(add bool, flags nat_types.NatConfigFlags, from, to byte) *nat44_ed.Nat44AddDelAddressRange {
	return &nat44_ed.Nat44AddDelAddressRange{
		IsAdd: add, Flags: flags, VrfID: pool.None,
		FirstIPAddress: [4]byte{172, 16, 0, from}, LastIPAddress: [4]byte{172, 16, 0, to},
	}
}

func enable(on bool, flags nat44_ed.Nat44ConfigFlags) *nat44_ed.Nat44EdPluginEnableDisable {
	return &nat44_ed.Nat44EdPluginEnableDisable{Enable: on, Flags: flags}
}

// Flags of the tables below.
const (
	flagBare = nat_types.NAT_IS_ADDR_ONLY
	flagO2I  = nat_types.NAT_IS_OUT2IN_ONLY
	flagIn   = nat_types.NAT_IS_INSIDE
	flagOut  = nat_types.NAT_IS_OUTSIDE
)

// turnOn enables the plugin.
var turnOn = step{enable(true, 0), 0}

// globalSteps are about the plugin as a whole, and about everything while it is off.
func globalSteps() map[string][]step {
	svc, a, b := at(vip, 80), at(backendA, 8080), at(backendB, 8080)
	return map[string][]step{
		"enable twice":                  {turnOn, {enable(true, 0), vnet.RetAlreadyEnabled}},
		"disable when disabled":         {{enable(false, 0), vnet.RetAlreadyDisabled}},
		"enable, disable, enable":       {turnOn, {enable(false, 0), 0}, turnOn},
		"static mapping only":           {{enable(true, nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY), vnet.RetUnsupported}},
		"connection tracking":           {{enable(true, nat44_ed.NAT44_IS_CONNECTION_TRACKING), vnet.RetUnsupported}},
		"endpoint dependent is ignored": {{enable(true, nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT), 0}},

		"off: lb":             {{lb(svc, 0, 10, a, b), vnet.RetUnsupported}, {unrow(svc), vnet.RetUnsupported}},
		"off: lb local":       {{local(true, svc, a, 1), vnet.RetUnsupported}},
		"off: simple":         {{simple(true, 0, "a"), vnet.RetUnsupported}, {simple(false, 0, "a"), vnet.RetUnsupported}},
		"off: identity":       {{identity(true, 0, 0), vnet.RetUnsupported}},
		"off: add address":    {{address(true, 0, 1, 1), vnet.RetUnsupported}},
		"off: del address":    {{address(false, 0, 1, 1), vnet.RetNoSuchEntry}},
		"off: interface":      {{role(true, flagIn, 1), vnet.RetUnsupported}, {role(false, flagIn, 1), vnet.RetUnsupported}},
		"off: output":         {{output(true, 1), vnet.RetUnsupported}, {output(false, 1), vnet.RetUnsupported}},
		"off: interface addr": {{&nat44_ed.Nat44AddDelInterfaceAddr{IsAdd: true, SwIfIndex: 1}, vnet.RetUnsupported}},
		"off: del session":    {{&nat44_ed.Nat44DelSession{}, vnet.RetUnsupported}},
		"off: globals": {
			{&nat44_ed.Nat44ForwardingEnableDisable{Enable: true}, 0},
			{&nat44_ed.NatSetTimeouts{UDP: 1}, 0},
			{&nat44_ed.Nat44SetSessionLimit{SessionLimit: 7}, 0},
		},

		"session limit of unknown vrf": {turnOn, {&nat44_ed.Nat44SetSessionLimit{SessionLimit: 7, VrfID: 99}, vnet.RetUnspecified}},
		"workers":                      {turnOn, {&nat44_ed.NatSetWorkers{WorkerMask: 1}, vnet.RetFeatureDisabled}},
		"fq options when enabled":      {turnOn, {&nat44_ed.Nat44EdSetFqOptions{FrameQueueNelts: 32}, vnet.RetAlreadyEnabled}},
		"fq options before":            {{&nat44_ed.Nat44EdSetFqOptions{FrameQueueNelts: 32}, 0}},
		"mss":                          {turnOn, {&nat44_ed.NatSetMssClamping{MssValue: 1400, Enable: true}, 0}},
	}
}

// interfaceSteps are about roles and addresses.
func interfaceSteps() map[string][]step {
	return map[string][]step{
		"role": {
			turnOn,
			{role(true, flagIn, 1), 0},
			{role(true, flagIn, 1), 0},
			{role(true, flagOut, 1), 0},
			{role(true, 0, 1), 0},
			{role(false, flagIn, 1), 0},
			{role(false, flagOut, 1), 0},
			{role(false, flagOut, 1), vnet.RetNoSuchEntry},
		},
		"role of unknown interface": {turnOn, {role(true, flagIn, 99), vnet.RetInvalidSwIfIndex}, {role(false, flagIn, pool.None), vnet.RetInvalidSwIfIndex}},
		"wrong role removes too":    {turnOn, {role(true, flagOut, 1), 0}, {role(false, flagIn, 1), 0}, {role(false, flagOut, 1), vnet.RetNoSuchEntry}},
		"output": {
			turnOn,
			{output(true, 1), 0},
			{output(true, 1), vnet.RetValueExist},
			{role(true, flagIn, 1), vnet.RetValueExist},
			{output(false, 1), 0},
			{output(false, 1), vnet.RetNoSuchEntry},
			{role(true, flagIn, 1), 0},
			{output(true, 1), vnet.RetValueExist},
			{output(true, 99), vnet.RetInvalidSwIfIndex},
		},

		"addresses": {
			turnOn,
			{address(true, 0, 1, 3), 0},
			{address(true, 0, 2, 2), vnet.RetValueExist},
			{address(true, twiceNAT, 2, 2), 0},
			{address(false, twiceNAT, 2, 2), 0},
			{address(false, twiceNAT, 2, 2), vnet.RetNoSuchEntry},
			{address(false, 0, 1, 3), 0},
			{address(false, 0, 1, 1), vnet.RetNoSuchEntry},
			{address(true, 0, 9, 3), 0}, // an empty range is no error
		},
		"range stops without rollback": {
			turnOn,
			{address(true, 0, 3, 3), 0},
			{address(true, 0, 1, 5), vnet.RetValueExist},
			{address(false, 0, 1, 2), 0},
			{address(false, 0, 4, 4), vnet.RetNoSuchEntry},
		},
		"interface addr": {
			turnOn,
			{&nat44_ed.Nat44AddDelInterfaceAddr{IsAdd: true, SwIfIndex: 1}, 0},
			{&nat44_ed.Nat44AddDelInterfaceAddr{IsAdd: true, SwIfIndex: 1}, vnet.RetValueExist},
			{&nat44_ed.Nat44AddDelInterfaceAddr{IsAdd: true, SwIfIndex: 1, Flags: twiceNAT}, 0},
			{&nat44_ed.Nat44AddDelInterfaceAddr{SwIfIndex: 1}, 0},
			{&nat44_ed.Nat44AddDelInterfaceAddr{SwIfIndex: 1}, vnet.RetNoSuchEntry},
			{&nat44_ed.Nat44AddDelInterfaceAddr{IsAdd: true, SwIfIndex: 99}, vnet.RetInvalidSwIfIndex},
		},
	}
}

// balancingSteps are about load-balancing mappings.
func balancingSteps() map[string][]step {
	svc, a, b, c := at(vip, 80), at(backendA, 8080), at(backendB, 8080), at(backendB, 8081)
	row := step{lb(svc, 0, 10, a, b), 0}
	plain := lb(svc, 0, 10, a, b)
	plain.Flags = 0
	vipInPool := &nat44_ed.Nat44AddDelAddressRange{IsAdd: true, VrfID: pool.None, FirstIPAddress: vip.As4(), LastIPAddress: vip.As4()}
	return map[string][]step{
		"lb with one local":           {turnOn, {lb(svc, 0, 10, a), vnet.RetInvalidValue}},
		"lb without locals":           {turnOn, {lb(svc, 0, 10), vnet.RetInvalidValue}},
		"lb duplicate":                {turnOn, row, {lb(svc, 0, 20, b, c), vnet.RetValueExist}},
		"lb with equal locals":        {turnOn, {lb(svc, 0, 10, a, a), 0}},
		"lb delete missing":           {turnOn, {unrow(svc), vnet.RetNoSuchEntry}},
		"lb delete on simple":         {turnOn, {simple(true, flagO2I, "a"), 0}, {unrow(at(simpleVIP, 80)), vnet.RetInvalidValue}},
		"lb over simple":              {turnOn, {simple(true, flagO2I, "a"), 0}, {lb(at(simpleVIP, 80), 0, 1, a, b), vnet.RetValueExist}},
		"lb without out2in-only":      {turnOn, {plain, vnet.RetNoSuchEntry}},
		"lb without o2i, VIP in pool": {turnOn, {vipInPool, 0}, {plain, 0}},
		"lb twice deleted":            {turnOn, row, {unrow(svc), 0}, {unrow(svc), vnet.RetNoSuchEntry}},
		"lb local": {
			turnOn,
			row,
			{local(true, svc, a, 1), vnet.RetValueExist},
			{local(true, svc, c, 1), 0},
			{local(false, svc, at(outsider, 1), 1), vnet.RetNoSuchEntry},
			{local(false, svc, c, 1), 0},
			{local(false, svc, a, 1), vnet.RetUnspecified},
			{local(true, at(otherVIP, 80), a, 1), vnet.RetNoSuchEntry},
			{local(false, at(otherVIP, 80), a, 1), vnet.RetNoSuchEntry},
		},
		"lb local of simple": {turnOn, {simple(true, flagO2I, "a"), 0}, {local(true, at(simpleVIP, 80), b, 1), vnet.RetInvalidValue}},
	}
}

// mappingSteps are about simple and identity mappings, and the rest.
func mappingSteps() map[string][]step {
	a, b := at(backendA, 8080), at(backendB, 8080)
	return map[string][]step{
		"simple": {
			turnOn,
			{simple(true, flagO2I, "a"), 0},
			{simple(true, flagO2I, "a"), vnet.RetValueExist},
			{simple(true, flagO2I, "b"), vnet.RetValueExist},
			{simple(false, flagO2I, "a"), 0},
			{simple(false, flagO2I, "a"), vnet.RetNoSuchEntry},
		},
		"simple: one mapping per backend": {
			turnOn,
			{simple(true, 0, "a"), 0},
			{func() api.Message { r := simple(true, 0, "a"); r.ExternalPort = 81; return r }(), vnet.RetValueExist},
			{func() api.Message { r := simple(true, flagO2I, "a"); r.ExternalPort = 81; return r }(), 0},
		},
		"simple: twice-nat with address only": {turnOn, {simple(true, twiceNAT|flagBare, "a"), vnet.RetUnsupported}, {simple(true, selfTwice|flagBare, "a"), vnet.RetUnsupported}, {simple(false, twiceNAT|flagBare, "a"), vnet.RetUnsupported}},
		"simple delete on lb":                 {turnOn, {lb(at(simpleVIP, 80), 0, 1, a, b), 0}, {simple(false, flagO2I, "a"), 0}, {unrow(at(simpleVIP, 80)), 0}},
		"simple with the first version": {turnOn, {&nat44_ed.Nat44AddDelStaticMapping{
			IsAdd: true, Flags: flagBare, ExternalIPAddress: simpleVIP.As4(), LocalIPAddress: backendA.As4(), ExternalSwIfIndex: noIf, VrfID: pool.None,
		}, 0}},
		"interface bound": {
			turnOn,
			{&nat44_ed.Nat44AddDelStaticMappingV2{IsAdd: true, LocalIPAddress: backendA.As4(), LocalPort: 80, ExternalPort: 80, Protocol: 6, ExternalSwIfIndex: 1}, 0},
			{&nat44_ed.Nat44AddDelStaticMappingV2{IsAdd: true, LocalIPAddress: backendA.As4(), LocalPort: 80, ExternalPort: 80, Protocol: 6, ExternalSwIfIndex: 1}, vnet.RetValueExist},
			{&nat44_ed.Nat44AddDelStaticMappingV2{LocalIPAddress: backendA.As4(), LocalPort: 80, ExternalPort: 80, Protocol: 6, ExternalSwIfIndex: 1}, 0},
			{&nat44_ed.Nat44AddDelStaticMappingV2{LocalIPAddress: backendA.As4(), LocalPort: 80, ExternalPort: 80, Protocol: 6, ExternalSwIfIndex: 1}, vnet.RetNoSuchEntry},
		},
		"identity": {
			turnOn,
			{identity(true, 0, 0), 0},
			{identity(true, 0, 0), vnet.RetValueExist},
			{identity(true, 0, 5), 0},
			{identity(false, 0, 7), vnet.RetNoSuchEntry},
			{identity(false, 0, 5), 0},
			{identity(false, 0, pool.None), 0},
			{identity(false, 0, 0), vnet.RetNoSuchEntry},
			{identity(true, flagBare, 0), 0},
		},
		"sessions": {turnOn, {&nat44_ed.Nat44DelSession{Address: backendA.As4(), Protocol: 6}, vnet.RetNoSuchEntry}},
		"vrf tables": {
			turnOn,
			{&nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: 3, IsAdd: true}, 0},
			{&nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: 3, IsAdd: true}, vnet.RetValueExist},
			{&nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: 3, VrfID: 4, IsAdd: true}, 0},
			{&nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: 3, VrfID: 4, IsAdd: true}, vnet.RetValueExist},
			{&nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: 3, VrfID: 4}, 0},
			{&nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: 3, VrfID: 4}, vnet.RetNoSuchEntry},
			{&nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: 8, VrfID: 4, IsAdd: true}, vnet.RetNoSuchEntry},
			{&nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: 3}, 0},
			{&nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: 3}, vnet.RetNoSuchEntry},
		},
	}
}

func TestReturnCodes(t *testing.T) {
	for _, steps := range []map[string][]step{globalSteps(), interfaceSteps(), balancingSteps(), mappingSteps()} {
		for name, sequence := range steps {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := bareRig(t, Options{})
				for i, s := range sequence {
					if got := r.call(s.req); got != s.want {
						t.Fatalf("step %d %s: retval %d, want %d", i, s.req.GetMessageName(), got, s.want)
					}
				}
			})
		}
	}
}
