package cnat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// OpResult is the outcome of one operation; PutRow has the id that VPP gave to the row.
type OpResult = batch.Result[Op]

// Apply carries out the operations in their order, in one pipelined batch, and returns one result
// per operation. A failed operation does not stop the later ones. Apply first asks which nodes the
// interfaces have, because VPP runs a node twice when it is enabled twice.
func Apply(ctx context.Context, c link.Caller, ops []Op) []OpResult {
	results := make([]OpResult, len(ops))
	interfaces, nodes := []uint32(nil), []node(nil)
	for i, op := range ops {
		results[i].Op = op
		if op.Verb == Attach || op.Verb == Detach {
			interfaces, nodes = append(interfaces, op.Interface), nodesOf(op.IPv4, op.Newer)
		}
	}
	missing, err := missingNodes(ctx, c, nodes, interfaces)
	if err == nil {
		err = makeRoom(ctx, c, ops, missing)
	}
	if err == nil {
		err = refuseBelow(ctx, c, results)
	}
	if err != nil {
		batch.NotSent(results, err)
	}
	batch.Send(ctx, c, results, func(i int) []api.Message {
		if ops[i].Verb == SetSNAT && !ops[i].Newer && !setPolicy(ctx, c, &results[i]) {
			return nil
		}
		return ops[i].messages(missing[ops[i].Interface])
	}, add)
	return results
}

// setPolicy sets the policy of Kubernetes, and reports whether the address may follow: with another
// policy VPP replaces every source.
func setPolicy(ctx context.Context, c link.Caller, r *OpResult) bool {
	add(r, batch.Do(ctx, c, []api.Message{&cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_K8S}})[0])
	return r.Err == nil
}

// messages returns the messages of an operation, in the order in which they have to be sent;
// missing are the nodes that its interface lacks. Tables are set before nodes: an interface with
// all nodes has its tables already.
func (op Op) messages(missing []node) (msgs []api.Message) {
	switch op.Verb {
	case SetSNAT:
		if op.Newer {
			return snatMessages(op)
		}
		return []api.Message{snatMessage(op.SNAT)}
	case SetTargets:
		for _, p := range op.Add {
			msgs = append(msgs, excludeMessage(p, 1))
		}
		for _, p := range slices.Backward(op.Del) { // marks last
			msgs = append(msgs, excludeMessage(p, 0))
		}
	case Attach:
		if (op.Moved || len(missing) > 0) && !op.Tables.Lost {
			msgs = tableMessages(op, &op.Tables)
		}
		for _, n := range missing {
			msgs = append(msgs, n.change(op.Interface, true))
		}
	case Detach:
		lacks := map[node]bool{}
		for _, n := range missing {
			lacks[n] = true
		}
		for _, n := range nodesOf(op.IPv4, op.Newer) {
			if !lacks[n] {
				msgs = append([]api.Message{n.change(op.Interface, false)}, msgs...)
			}
		}
		if !op.Tables.Lost {
			msgs = append(msgs, tableMessages(op, nil)...)
		}
	case PutRow:
		return []api.Message{rowMessage(op.Row, op.Newer)}
	case DelRow:
		return []api.Message{&cnat.CnatTranslationDel{ID: op.ID}}
	}
	return msgs
}

// add enters the answer to one message of an operation.
func add(r *OpResult, answer link.Result) {
	if reply, ok := answer.Reply.(*cnat.CnatTranslationUpdateReply); ok && answer.Err == nil {
		r.Op.ID = reply.ID
	}
	r.Add(answer.Err, func(retval int32) (error, bool) { return meaningOf(r.Op.Verb, retval) })
	r.Unknown = r.Unknown || answer.Err != nil && r.Err != nil && r.Messages > 1
}

// meaningOf classifies a return value other than 0: nil where the object is gone, as wanted.
func meaningOf(verb Verb, retval int32) (err error, unknown bool) {
	switch {
	case retval == retNoSuchEntry && verb == DelRow, retval == retNoInterface && verb == Detach, retval == retNotExcluded && verb == SetTargets:
		return nil, false
	case retval == retNoInterface:
		return ErrNoInterface, true
	}
	return batch.ErrRejected, false
}

// Errors of this package, for errors.Is. Apply's errors classify the return value of VPP for the
// operation.
var (
	// ErrNoInterface means that VPP does not know the interface any more (-2).
	ErrNoInterface = errors.New("no such interface")
	// ErrBelowICMP means that the row is not sent, because VPP would crash.
	ErrBelowICMP = errors.New("VPP of this version cannot serve an address below a route that answers with ICMP")
)

// Return values of VPP 25.10 (vnet/error.h) that have a meaning for our operations.
const (
	retNoInterface = -2
	retNoSuchEntry = -6
	retNotExcluded = 1 // the removal of a network that is not excluded
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
