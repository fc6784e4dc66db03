// Package virtual connects a simulated VPP without a socket, in virtual time, with the faults that
// a connection can have. It is for simulations of the whole agent; tests of the link itself use the
// socket of vpp/simulator.
//
// A Stream belongs to the one goroutine on which its Time runs all functions in turn. Only its VPP
// has to be closed.
package virtual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// Row is a load-balancing row as VPP's dump returns it, whatever client added it.
type Row struct {
	// At is the frontend.
	At netip.AddrPort
	// Tag marks the owner.
	Tag string
	// Backends are reached by new connections, Draining only keep theirs; both are ordered.
	Backends, Draining []netip.AddrPort
}

// RowChange is one change of a load-balancing row that VPP has made.
type RowChange struct {
	// At is the frontend.
	At netip.AddrPort
	// Backend is the one that was added or removed; invalid when it was the whole row.
	Backend netip.AddrPort
	// Added is false for a removal.
	Added bool
	// Refused says that VPP was asked for the change and refused it (Stream.Refuse).
	Refused bool
}

// RowChangeOf returns the change of a row that a request makes.
func RowChangeOf(req api.Message) (RowChange, bool) {
	switch m := req.(type) {
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		return RowChange{At: netip.AddrPortFrom(netip.AddrFrom4(m.ExternalAddr), m.ExternalPort), Added: m.IsAdd}, true
	case *nat44_ed.Nat44LbStaticMappingAddDelLocal:
		return RowChange{
			At:      netip.AddrPortFrom(netip.AddrFrom4(m.ExternalAddr), m.ExternalPort),
			Backend: netip.AddrPortFrom(netip.AddrFrom4(m.Local.Addr), m.Local.Port), Added: m.IsAdd,
		}, true
	}
	return RowChange{}, false
}

// spared reports whether a request is never refused.
func (d *Stream) spared(req api.Message) bool {
	c, is := RowChangeOf(req)
	return is && d.Spared != nil && d.Spared(c)
}

// Rows reads all rows, ordered by frontend. A VPP that is down has none.
func (d *Stream) Rows() ([]Row, error) {
	if !d.VPP.Alive() {
		return nil, nil
	}
	var rows []Row
	err := link.Each(context.Background(), d.Reader(), &nat44_ed.Nat44LbStaticMappingDump{}, func(d *nat44_ed.Nat44LbStaticMappingDetails) {
		row := Row{At: netip.AddrPortFrom(netip.AddrFrom4(d.ExternalAddr), d.ExternalPort), Tag: d.Tag}
		entries := make([]nat44.Local, len(d.Locals))
		for i, l := range d.Locals {
			entries[i] = nat44.Local{Addr: netip.AddrFrom4(l.Addr), Port: l.Port, Weight: l.Probability}
		}
		live, draining := nat44.Shares(row.At, entries)
		row.Backends, row.Draining = endpoints(live), endpoints(draining)
		rows = append(rows, row)
	})
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(a.At.Compare(b.At)) })
	return rows, nil
}

// endpoints returns the endpoints of locals, ordered.
func endpoints(locals []nat44.Local) (all []netip.AddrPort) {
	for _, l := range locals {
		all = append(all, l.Endpoint())
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return all
}

// Reader reads VPP beside the connection: it costs no time and is not counted. It is for the checks
// of a simulation, not for actors.
type Reader struct{ vpp *simulator.VPP }

// NewReader returns a Reader of a VPP.
func NewReader(vpp *simulator.VPP) Reader { return Reader{vpp} }

// Reader returns a Reader of this VPP.
func (d *Stream) Reader() Reader { return Reader{d.VPP} }

// Do satisfies link.Caller.
func (r Reader) Do(_ context.Context, requests []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(requests))
	for i, request := range requests {
		reply, err := execute(r.vpp, request)
		results[i] = outcome(request, reply, err)
	}
	return results, nil
}

// execute passes a request to VPP, which has one reply.
func execute(vpp *simulator.VPP, req api.Message) (api.Message, error) {
	replies, err := vpp.Exec(req)
	if err == nil && len(replies) != 1 {
		err = fmt.Errorf("%d replies", len(replies))
	}
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// outcome is the result of a request that was passed to VPP.
func outcome(req, reply api.Message, err error) link.Result {
	switch {
	case errors.Is(err, simulator.ErrUnknownMessage):
		return link.Result{Err: fmt.Errorf("%w: %s", link.ErrUnsupported, req.GetMessageName())}
	case err != nil:
		return link.Result{Err: fmt.Errorf("%w: %s: %w", link.ErrUnknown, req.GetMessageName(), err)}
	}
	if retval := retvalOf(reply); retval != 0 {
		return link.Result{Reply: reply, Err: &link.RetvalError{Message: req.GetMessageName(), Retval: retval}}
	}
	return link.Result{Reply: reply}
}

// Dump satisfies link.Caller.
func (r Reader) Dump(_ context.Context, request api.Message, each func(api.Message)) error {
	details, err := r.vpp.Exec(request)
	if errors.Is(err, simulator.ErrUnknownMessage) {
		return fmt.Errorf("%w: %s", link.ErrUnsupported, request.GetMessageName())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", request.GetMessageName(), err)
	}
	for _, m := range details {
		if strings.HasSuffix(m.GetMessageName(), "_details") {
			each(m)
		}
	}
	return nil
}
