package cnat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/vpp/features"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// makeRoom gives the tables of the interfaces that get nodes room for their sessions in VPP 26.06.
// That VPP counts the sessions of each table in a vector, which grows when an interface enters a
// table, but only after CNAT's first use. A packet from an interface that entered its table before
// overwrites the memory behind the vector, and VPP hangs or crashes. So a loopback interface, on
// which CNAT is used first, enters each of the tables and goes again.
func makeRoom(ctx context.Context, c link.Caller, ops []Op, missing map[uint32][]node) error {
	tables, err := tablesOf(ctx, c, ops, missing)
	if err != nil || len(tables) == 0 {
		return err
	}
	reply, err := link.Ask[*interfaces.CreateLoopbackReply](ctx, c, &interfaces.CreateLoopback{})
	if err != nil {
		return fmt.Errorf("create the interface that makes room for tables: %w", err)
	}
	i := reply.SwIfIndex
	msgs := []api.Message{&features.FeatureCnatEnableDisable{SwIfIndex: uint32(i), EnableDisable: true}}
	for _, t := range append(tables, interfaces.SwInterfaceSetTable{}, interfaces.SwInterfaceSetTable{IsIPv6: true}) {
		t.SwIfIndex = i
		msgs = append(msgs, &t)
	}
	msgs = append(msgs, &features.FeatureCnatEnableDisable{SwIfIndex: uint32(i)}, &interfaces.DeleteLoopback{SwIfIndex: i})
	answers, err := c.Do(ctx, msgs)
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	if err != nil {
		return fmt.Errorf("make room for %d tables: %w", len(tables), err)
	}
	return nil
}

// tablesOf are the tables, except the default ones, of the interfaces that get nodes in VPP 26.06.
// The interface of each message is still to be set.
func tablesOf(ctx context.Context, c link.Caller, ops []Op, missing map[uint32][]node) (tables []interfaces.SwInterfaceSetTable, err error) {
	var msgs []api.Message
	for _, op := range ops {
		if op.Verb == Attach && op.Newer && len(missing[op.Interface]) > 0 {
			i := interface_types.InterfaceIndex(op.Interface)
			msgs = append(msgs, &interfaces.SwInterfaceGetTable{SwIfIndex: i}, &interfaces.SwInterfaceGetTable{SwIfIndex: i, IsIPv6: true})
		}
	}
	if len(msgs) == 0 {
		return nil, nil
	}
	answers, err := c.Do(ctx, msgs)
	if err != nil {
		return nil, fmt.Errorf("read the tables of interfaces: %w", err)
	}
	for n, a := range answers {
		if _, answered := link.Retval(a.Err); a.Err != nil && answered {
			continue // there is no such interface
		}
		reply, ok := a.Reply.(*interfaces.SwInterfaceGetTableReply)
		if !ok {
			return nil, fmt.Errorf("read the tables of interfaces: %w", a.Err)
		}
		t := interfaces.SwInterfaceSetTable{IsIPv6: n%2 == 1, VrfID: reply.VrfID}
		if t.VrfID != 0 && !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	return tables, nil
}
