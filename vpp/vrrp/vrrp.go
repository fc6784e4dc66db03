package vrrp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/troupe-vpp/troupe/vpp/batch"
	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// Key names a virtual router.
type Key struct {
	// Interface is a sw_if_index.
	Interface uint32
	// ID is the virtual router ID, 1 to 255. IPv6 is its family.
	ID   uint8
	IPv6 bool
}

// String is "7/IPv4 on interface 1".
func (k Key) String() string {
	family := "IPv4"
	if k.IPv6 {
		family = "IPv6"
	}
	return fmt.Sprintf("%d/%s on interface %d", k.ID, family, k.Interface)
}

// Compare orders keys.
func (k Key) Compare(o Key) int {
	six := func(k Key) int {
		if k.IPv6 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(k.Interface, o.Interface), cmp.Compare(k.ID, o.ID), six(k)-six(o))
}

// Router is a virtual router as VPP should hold it.
type Router struct {
	// Priority is 1 to 254; the highest owns the addresses.
	Priority uint8
	// Interval between advertisements: a multiple of 10 ms, at most 40.95 s. All nodes have the
	// same.
	Interval time.Duration
	// Addresses are of one family, at least one.
	Addresses []netip.Addr
}

// Equal compares two routers. The order of addresses has no meaning.
func (r Router) Equal(o Router) bool {
	ordered := func(all []netip.Addr) []netip.Addr { return slices.SortedFunc(slices.Values(all), netip.Addr.Compare) }
	return r.Priority == o.Priority && r.Interval == o.Interval && slices.Equal(ordered(r.Addresses), ordered(o.Addresses))
}

// State is what VPP's state machine says.
type State = vrrp.VrrpVrState

// Backup is the state of a router that has been started.
const Backup = vrrp.VRRP_API_VR_STATE_BACKUP

// Held is a virtual router as VPP holds it.
type Held struct {
	Router
	State State
	// Ours says that the agent has made it.
	Ours bool
	// Odd says that it has flags that the agent does not use.
	Odd bool
}

// Running reports whether it takes part in elections.
func (h *Held) Running() bool { return h.State != vrrp.VRRP_API_VR_STATE_INIT }

// Owner reports whether VPP answers for the addresses.
func (h *Held) Owner() bool { return h.State == vrrp.VRRP_API_VR_STATE_MASTER }

// Same reports whether two readings agree in everything but the election.
func (h Held) Same(o Held) bool {
	return h.Equal(o.Router) && h.Running() == o.Running() && h.Ours == o.Ours && h.Odd == o.Odd
}

// Verb is the kind of an operation.
type Verb uint8

// The operations.
const (
	// Add makes a router and starts it.
	Add Verb = iota + 1
	// Start starts a router that VPP holds.
	Start
	// Replace stops a router and makes it anew.
	Replace
	// Delete stops a router, so that another node takes over, and deletes it.
	Delete
)

// Op is one operation on a router of the agent.
type Op struct {
	Verb Verb
	Key
	// Router is wanted; the zero value for Delete.
	Router
	// Why is the reason of a replacement.
	Why string
}

// Describe is the operation in one line.
func (op Op) Describe() string {
	text := batch.Name([]string{Add: "add", Start: "start", Replace: "replace", Delete: "delete"}, op.Verb) + " virtual router " + op.Key.String()
	if op.Verb != Delete {
		text += fmt.Sprintf(": priority %d, every %s, %d addresses from %s", op.Priority, op.Interval, len(op.Addresses), op.Addresses[0])
	}
	if op.Why != "" {
		text += " (" + op.Why + ")"
	}
	return text
}

// Diff returns the operation that brings one router from what VPP holds (nil = nothing) to what it
// should hold (nil = nothing). A router of another client is left alone.
func Diff(k Key, held *Held, want *Router) []Op {
	switch {
	case held != nil && !held.Ours, held == nil && want == nil:
		return nil
	case want == nil:
		return []Op{{Verb: Delete, Key: k}}
	case held == nil:
		return []Op{{Verb: Add, Key: k, Router: *want}}
	case held.Odd:
		return []Op{{Verb: Replace, Key: k, Router: *want, Why: "it has flags of another client"}}
	case held.Priority != want.Priority:
		return []Op{{Verb: Replace, Key: k, Router: *want, Why: fmt.Sprintf("its priority was %d", held.Priority)}}
	case !held.Equal(*want):
		return []Op{{Verb: Replace, Key: k, Router: *want, Why: "its addresses or its interval have changed"}}
	case !held.Running():
		return []Op{{Verb: Start, Key: k, Router: *want}}
	}
	return nil
}

// unit of intervals in VPP.
const unit = 10 * time.Millisecond

// Messages are the requests of an operation.
func (op Op) Messages() []api.Message {
	index := interface_types.InterfaceIndex(op.Interface)
	change := func(add uint8) api.Message {
		// VPP refuses a deletion without a priority and an interval, too.
		m := &vrrp.VrrpVrAddDel{
			IsAdd: add, SwIfIndex: index, VrID: op.ID, Flags: op.flags(),
			Priority: max(op.Priority, 1), Interval: uint16(max(op.Interval/unit, 1)), //nolint:gosec // Check bounds it
		}
		for _, a := range op.Addresses {
			m.Addrs = append(m.Addrs, forwarding.Address(a))
		}
		m.NAddrs = uint8(len(m.Addrs))
		return m
	}
	start := func(start, ipv6 uint8) api.Message {
		return &vrrp.VrrpVrStartStop{SwIfIndex: index, VrID: op.ID, IsIPv6: ipv6, IsStart: start}
	}
	six := uint8(0)
	if op.IPv6 {
		six = 1
	}
	switch op.Verb {
	case Add:
		return []api.Message{change(1), start(1, six)}
	case Start:
		return []api.Message{start(1, six)}
	case Replace:
		return []api.Message{start(0, six), change(0), change(1), start(1, six)}
	case Delete:
		return []api.Message{start(0, six), change(0)}
	}
	return nil
}

// flags are those of all routers of the agent: preemption, so that owners spread over nodes.
func (op Op) flags() vrrp.VrrpVrFlags {
	if op.IPv6 {
		return vrrp.VRRP_API_VR_PREEMPT | vrrp.VRRP_API_VR_IPV6
	}
	return vrrp.VRRP_API_VR_PREEMPT
}

// Read returns all virtual routers of VPP. ours says of which the agent has made them.
func Read(ctx context.Context, c link.Caller, ours func(Key) bool) (map[Key]Held, error) {
	all := map[Key]Held{}
	err := c.Dump(ctx, &vrrp.VrrpVrDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}, func(msg api.Message) {
		d, is := msg.(*vrrp.VrrpVrDetails)
		if !is {
			return
		}
		k := Key{uint32(d.Config.SwIfIndex), d.Config.VrID, d.Config.Flags&vrrp.VRRP_API_VR_IPV6 != 0}
		h := Held{
			Router: Router{Priority: d.Config.Priority, Interval: time.Duration(d.Config.Interval) * unit},
			State:  d.Runtime.State, Ours: ours(k), Odd: d.Config.Flags != Op{Key: k}.flags(),
		}
		for _, a := range d.Addrs {
			h.Addresses = append(h.Addresses, forwarding.FromAddress(a))
		}
		all[k] = h
	})
	if err != nil {
		return nil, fmt.Errorf("read virtual routers: %w", err)
	}
	return all, nil
}

// Errors of Apply.
var (
	// ErrTaken means that VPP holds another router under the key, or one with an address of it.
	ErrTaken = errors.New("another client of VPP has this virtual router or one of its addresses")
	// ErrNoInterface means that the interface is gone.
	ErrNoInterface = link.Classified("no such interface", link.ErrStale)
)

// Return values of VPP (vnet/error.h) that have a meaning.
const (
	retInvalidSwIfIndex = -2
	retNoSuchEntry      = -6
	retAddressInUse     = -105
	retAlreadyExists    = -116
)

// Apply carries out operations, and returns a result for each.
func Apply(ctx context.Context, c link.Caller, ops []Op) []batch.Result[Op] {
	results := make([]batch.Result[Op], len(ops))
	for i, op := range ops {
		results[i].Op = op
	}
	batch.Send(ctx, c, results, func(i int) []api.Message { return ops[i].Messages() }, func(r *batch.Result[Op], answer link.Result) {
		r.Add(answer.Err, func(retval int32) (error, bool) { return meaning(r.Op.Verb, retval) })
	})
	return results
}

// meaning classifies a return value other than 0, and says whether VPP may hold something else than
// was read.
func meaning(verb Verb, retval int32) (err error, unknown bool) { //nolint:revive // as batch wants it
	switch retval {
	case retNoSuchEntry: // stopped or deleted already
		if verb == Delete || verb == Replace {
			return nil, verb == Replace
		}
		return batch.ErrRejected, true
	case retAlreadyExists, retAddressInUse:
		return ErrTaken, true
	case retInvalidSwIfIndex:
		return ErrNoInterface, true
	}
	return batch.ErrRejected, true
}
