package contract

import (
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

// loopback creates an interface.
func loopback(t testing.TB, v *rig) interface_types.InterfaceIndex {
	t.Helper()
	return ask[*interfaces.CreateLoopbackReply](t, v, &interfaces.CreateLoopback{}).SwIfIndex
}

// deleteLoopback deletes an interface.
func deleteLoopback(t testing.TB, v *rig, index interface_types.InterfaceIndex) {
	t.Helper()
	v.expect(t, ok, &interfaces.DeleteLoopback{SwIfIndex: index})
}

// up sets an interface up.
func up(index interface_types.InterfaceIndex) *interfaces.SwInterfaceSetFlags {
	return &interfaces.SwInterfaceSetFlags{SwIfIndex: index, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP}
}

// address makes the message that gives an interface an address.
func address(t testing.TB, index interface_types.InterfaceIndex, text string) *interfaces.SwInterfaceAddDelAddress {
	t.Helper()
	prefix, err := ip_types.ParseAddressWithPrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	return &interfaces.SwInterfaceAddDelAddress{IsAdd: true, SwIfIndex: index, Prefix: prefix}
}

// all returns every interface of VPP by index.
func all(t testing.TB, v *rig) map[interface_types.InterfaceIndex]*interfaces.SwInterfaceDetails {
	t.Helper()
	found := map[interface_types.InterfaceIndex]*interfaces.SwInterfaceDetails{}
	for _, d := range dump[*interfaces.SwInterfaceDetails](t, v, &interfaces.SwInterfaceDump{SwIfIndex: none}) {
		found[d.SwIfIndex] = d
	}
	return found
}

var interfaceCases = []contractCase{
	{"interface/dump", func(t *testing.T, v *rig) {
		a, b := loopback(t, v), loopback(t, v)
		v.expect(t, ok, up(b))
		found := all(t, v)
		if len(found) != 3 {
			t.Fatalf("%d interfaces", len(found))
		}
		for index, name := range map[interface_types.InterfaceIndex]string{0: "local0", a: "loop0", b: "loop1"} {
			if d := found[index]; d == nil || d.InterfaceName != name || d.SupSwIfIndex != uint32(index) || d.Tag != "" {
				t.Errorf("interface %d is %+v, want %s", index, d, name)
			}
		}
		if found[0].InterfaceDevType != "local" || found[a].InterfaceDevType != "Loopback" {
			t.Errorf("types %q and %q", found[0].InterfaceDevType, found[a].InterfaceDevType)
		}
		const admin, link = interface_types.IF_STATUS_API_FLAG_ADMIN_UP, interface_types.IF_STATUS_API_FLAG_LINK_UP
		if found[a].Flags != 0 || found[b].Flags != admin|link {
			t.Errorf("flags %s and %s", found[a].Flags, found[b].Flags)
		}
	}},
	{"interface/no such", func(t *testing.T, v *rig) {
		v.expect(t, noInterface, up(99))
		v.expect(t, noInterface, address(t, 99, "10.0.0.1/24"))
		v.expect(t, noInterface, &interfaces.SwInterfaceGetTable{SwIfIndex: 99})
	}},
	{"interface/addresses", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		v.expect(t, ok, up(index))
		v.expect(t, ok, address(t, index, "10.0.0.1/24"))
		v.expect(t, ok, address(t, index, "fd00::1/64"))
		var got []string
		for _, six := range []bool{false, true} {
			for _, d := range dump[*ip.IPAddressDetails](t, v, &ip.IPAddressDump{SwIfIndex: index, IsIPv6: six}) {
				got = append(got, d.Prefix.String())
			}
		}
		check(t, "addresses", []string{"10.0.0.1/24", "fd00::1/64"}, got)
	}},
	{"interface/table", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		v.expect(t, ok, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 7, Name: "pods"}})
		v.expect(t, ok, &interfaces.SwInterfaceSetTable{SwIfIndex: index, VrfID: 7})
		if got := ask[*interfaces.SwInterfaceGetTableReply](t, v, &interfaces.SwInterfaceGetTable{SwIfIndex: index}).VrfID; got != 7 {
			t.Errorf("table %d", got)
		}
		if got := ask[*interfaces.SwInterfaceGetTableReply](t, v, &interfaces.SwInterfaceGetTable{SwIfIndex: 0}).VrfID; got != 0 {
			t.Errorf("table %d", got)
		}
		var tables []uint32
		for _, d := range dump[*ip.IPTableDetails](t, v, &ip.IPTableDump{}) {
			if !d.Table.IsIP6 {
				tables = append(tables, d.Table.TableID)
			}
		}
		check(t, "tables", []uint32{0, 7}, tables)
	}},
	{"interface/events", func(t *testing.T, v *rig) {
		raw := realvpp.NewRaw(t, v.Socket())
		want := &interfaces.WantInterfaceEvents{EnableDisable: 1, PID: 4242}
		if got := raw.Retval(t, want); got != ok {
			t.Errorf("returned %d", got)
		}
		if got := raw.Retval(t, want); got != -31 {
			t.Errorf("the second time it returned %d, want -31", got)
		}
		index := loopback(t, v)
		v.expect(t, ok, up(index))
		for {
			event := &interfaces.SwInterfaceEvent{}
			if raw.Event(t, event); event.PID != 4242 || event.SwIfIndex != index || event.Deleted {
				t.Fatalf("event %+v", event)
			}
			if event.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0 {
				break
			}
		}
		deleteLoopback(t, v, index)
		for {
			event := &interfaces.SwInterfaceEvent{}
			if raw.Event(t, event); event.SwIfIndex == index && event.Deleted {
				break
			}
		}
	}},
	{"interface/version", func(t *testing.T, v *rig) {
		got, want := ask[*vpe.ShowVersionReply](t, v, &vpe.ShowVersion{}).Version, v.version(t).name
		if _, simulated := v.Target.(*simulated); simulated {
			want = "25.10"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("version %q, want %s", got, want)
		}
	}},
	{"interface/neighbours", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		v.expect(t, ok, up(index))
		v.expect(t, ok, address(t, index, "10.0.0.1/24"))
		v.expect(t, ok, neighbour(t, index, "10.0.0.2"))
		found := dump[*ip_neighbor.IPNeighborDetails](t, v, &ip_neighbor.IPNeighborDump{SwIfIndex: none})
		if len(found) != 1 || found[0].Neighbor.SwIfIndex != index || found[0].Neighbor.IPAddress.String() != "10.0.0.2" {
			t.Errorf("neighbours %+v", found)
		}
	}},
	{"interface/ping", func(t *testing.T, v *rig) {
		first := ask[*memclnt.ControlPingReply](t, v, &memclnt.ControlPing{})
		v.Crash(t)
		v.waitDown(t)
		v.Restart(t)
		v.waitUp(t)
		if second := ask[*memclnt.ControlPingReply](t, v, &memclnt.ControlPing{}); second.VpePID == first.VpePID {
			t.Errorf("two starts of VPP have the pid %d", first.VpePID)
		}
	}},
}

// neighbour makes the message that adds a static neighbour.
func neighbour(t testing.TB, index interface_types.InterfaceIndex, text string) *ip_neighbor.IPNeighborAddDel {
	t.Helper()
	addr, err := ip_types.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return &ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: ip_neighbor.IPNeighbor{
		SwIfIndex: index, Flags: ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, IPAddress: addr,
		MacAddress: ethernet_types.MacAddress{2, 0, 0, 0, 0, 2},
	}}
}
