package cnat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/feature"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// tabled is a VPP in which interfaces are in tables; it notes what it is told.
type tabled struct {
	link.Caller
	tables map[interfaces.SwInterfaceGetTable]uint32
	told   []string
}

func (v *tabled) Do(_ context.Context, msgs []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(msgs))
	for i, msg := range msgs {
		switch m := msg.(type) {
		case *feature.FeatureIsEnabled:
			results[i].Reply = &feature.FeatureIsEnabledReply{}
			continue
		case *interfaces.SwInterfaceGetTable:
			results[i].Reply = &interfaces.SwInterfaceGetTableReply{VrfID: v.tables[*m]}
			continue
		case *interfaces.CreateLoopback:
			results[i].Reply = &interfaces.CreateLoopbackReply{SwIfIndex: 99}
		}
		v.told = append(v.told, fmt.Sprintf("%s %+v", msg.GetMessageName(), msg))
	}
	return results, nil
}

// TestRoomForTables: before interfaces of other tables than the default ones get the nodes of
// 26.06, an interface enters each of these tables once, and goes again.
func TestRoomForTables(t *testing.T) {
	attach := func(newer bool) (ops []Op) {
		for index := range uint32(3) {
			ops = append(ops, Op{Verb: Attach, Interface: index, IPv4: true, Newer: newer})
		}
		return ops
	}
	get := func(index interface_types.InterfaceIndex, six bool) interfaces.SwInterfaceGetTable {
		return interfaces.SwInterfaceGetTable{SwIfIndex: index, IsIPv6: six}
	}
	for _, c := range []struct {
		name   string
		tables map[interfaces.SwInterfaceGetTable]uint32
		newer  bool
		want   []string
	}{
		{"VPP 25.10", map[interfaces.SwInterfaceGetTable]uint32{get(1, false): 7}, false, nil},
		{"default tables", nil, true, nil},
		{"two interfaces in a table", map[interfaces.SwInterfaceGetTable]uint32{get(1, false): 7, get(2, false): 7, get(2, true): 9}, true, []string{
			"create_loopback &{MacAddress:00:00:00:00:00:00}",
			"feature_cnat_enable_disable &{SwIfIndex:99 EnableDisable:true}",
			"sw_interface_set_table &{SwIfIndex:99 IsIPv6:false VrfID:7}",
			"sw_interface_set_table &{SwIfIndex:99 IsIPv6:true VrfID:9}",
			"sw_interface_set_table &{SwIfIndex:99 IsIPv6:false VrfID:0}",
			"sw_interface_set_table &{SwIfIndex:99 IsIPv6:true VrfID:0}",
			"feature_cnat_enable_disable &{SwIfIndex:99 EnableDisable:false}",
			"delete_loopback &{SwIfIndex:99}",
		}},
	} {
		vpp := &tabled{tables: c.tables}
		Apply(t.Context(), vpp, attach(c.newer))
		made := slices.ContainsFunc(vpp.told[len(c.want):], func(s string) bool { return strings.Contains(s, "loopback") })
		if got := vpp.told[:len(c.want)]; !slices.Equal(got, c.want) || made {
			t.Errorf("%s: VPP was told\n%q, want\n%q and then nodes", c.name, vpp.told, c.want)
		}
	}
}
