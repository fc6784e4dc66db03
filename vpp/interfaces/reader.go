package interfaces

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

const (
	// defaultShare keeps a quiet round below 40 requests.
	defaultShare = 4
	// settling is the number of complete rounds after a change: a CNI adds addresses and routes
	// some time after the interface, and VPP has no events for these.
	settling = 3
)

// Reader discovers the interfaces repeatedly with few reads. A quiet round, in which neither the
// list of interfaces nor the addresses of the input are new, costs a number of requests that does
// not depend on the size of the node: the lists of interfaces, the addresses of the uplink, the
// default routes, and a share of everything else in turn. A difference in any of these makes the
// same round a complete one.
//
// A change without an event, for example of a route, is noticed after at most (interfaces or
// addresses)/Share quiet rounds. The zero value is ready to use; a Reader belongs to one goroutine
// at a time.
type Reader struct {
	// Share is the number of interfaces, and of addresses of the input, that a quiet round
	// reads. Default 4.
	Share int

	known     bool // raw and addresses are of the last round
	raw       Raw
	addresses []netip.Addr
	remote    []netip.Addr
	boot      string
	complete  int // complete rounds that are still due
	// turn counts the quiet rounds: it selects the share.
	turn int
}

// Forget makes the next round complete. Call it after an interface event, and after a new
// connection to VPP.
func (r *Reader) Forget() { r.known = false }

// Discover reads VPP and derives the interface set. The answers of VPP are not a snapshot: an
// interface that is added or deleted meanwhile is corrected by the next round, which its event
// triggers. An error names what could not be read, and wraps link.ErrDown, link.ErrUnknown or the
// error of ctx. No set is returned then, because an incomplete set would remove roles from
// interfaces, and the next round is complete.
func (r *Reader) Discover(ctx context.Context, c link.Caller, in Input) (*messages.InterfaceSet, error) {
	raw, err := r.read(ctx, c, &in)
	if err != nil {
		r.Forget()
		return nil, fmt.Errorf("discover interfaces: %w", err)
	}
	r.raw, r.boot, r.known = raw, in.Boot, true
	return Derive(raw, in), nil
}

// read makes one round: a quiet one while nothing has changed, otherwise a complete one.
func (r *Reader) read(ctx context.Context, c link.Caller, in *Input) (Raw, error) {
	raw, err := readList(ctx, c)
	if err != nil {
		return Raw{}, err
	}
	addresses := in.addresses()
	remote := in.remote(&raw, addresses)
	// Another VPP, another list of interfaces or tables, or new addresses of pods need a complete
	// round: the last one says nothing about them.
	if !r.known || r.boot != in.Boot || !slices.EqualFunc(r.raw.Interfaces, raw.Interfaces, sameInterface) || !slices.Equal(r.raw.Tables, raw.Tables) ||
		!slices.Equal(r.addresses, addresses) || !slices.Equal(r.remote, remote) {
		r.complete = settling
	}
	r.addresses, r.remote = addresses, remote
	if r.complete == 0 {
		// A difference in the share means that VPP changed without an event, so everything
		// else may have changed too.
		quiet, err := r.readShare(ctx, c, &raw)
		if quiet || err != nil {
			return raw, err
		}
		r.complete = settling
	}
	if err := readEach(ctx, c, &raw, addressable(raw.Interfaces)); err != nil {
		return Raw{}, err
	}
	if err := readRoutes(ctx, c, &raw, addresses, remote); err != nil {
		return Raw{}, err
	}
	r.complete--
	return raw, nil
}

// readShare completes raw from the last round and reads a share of it again. It reports false, with
// raw unchanged, when VPP differs from the last round.
func (r *Reader) readShare(ctx context.Context, c link.Caller, raw *Raw) (quiet bool, err error) {
	r.turn++
	now := r.interfacesInTurn(raw)
	if err := readEach(ctx, c, raw, now); err != nil {
		return false, err
	}
	// The lookup includes the default routes every time, because they decide which interface is
	// the uplink.
	part := Raw{Interfaces: raw.Interfaces, Tables: raw.Tables, tables6: raw.tables6}
	if err := readRoutes(ctx, c, &part, share(r.addresses, r.turn, r.size()), share(r.remote, r.turn, r.size())); err != nil {
		return false, err
	}
	quiet = part.Default4.equal(r.raw.Default4) && part.Default6.equal(r.raw.Default6)
	for address, target := range part.Targets {
		quiet = quiet && target.equal(r.raw.Targets[address])
	}
	read := make(map[uint32]bool, len(now))
	for _, i := range now {
		read[i.Index] = true
	}
	for k := range raw.Interfaces {
		i, before := &raw.Interfaces[k], &r.raw.Interfaces[k]
		quiet = quiet && (!read[i.Index] || slices.Equal(i.Addresses, before.Addresses) && i.Table == before.Table)
	}
	for k := range raw.Interfaces {
		raw.Interfaces[k].Addresses, raw.Interfaces[k].Table = nil, 0
		if quiet {
			raw.Interfaces[k].Addresses, raw.Interfaces[k].Table = r.raw.Interfaces[k].Addresses, r.raw.Interfaces[k].Table
		}
	}
	if quiet {
		raw.Targets, raw.Default4, raw.Default6 = r.raw.Targets, r.raw.Default4, r.raw.Default6
	}
	return quiet, nil
}

// interfacesInTurn returns the interfaces whose addresses this round reads: the interfaces of the
// default routes, and a share of the others.
func (r *Reader) interfacesInTurn(raw *Raw) []*RawInterface {
	var always, others []*RawInterface
	for _, i := range addressable(raw.Interfaces) {
		if slices.Contains(r.raw.Default4.Interfaces, i.Index) || slices.Contains(r.raw.Default6.Interfaces, i.Index) {
			always = append(always, i)
		} else {
			others = append(others, i)
		}
	}
	// Many default paths would make the number of requests depend on the node again.
	return append(share(always, r.turn, r.size()), share(others, r.turn, r.size())...)
}

// size is the number of elements in a share.
func (r *Reader) size() int {
	if r.Share > 0 {
		return r.Share
	}
	return defaultShare
}

// share returns size elements, starting after the share of the turn before, so that every element
// is read in turn.
func share[T any](elements []T, turn, size int) []T {
	if len(elements) <= size {
		return elements
	}
	picked := make([]T, 0, size)
	for k := range size {
		picked = append(picked, elements[(turn*size+k)%len(elements)])
	}
	return picked
}

// sameInterface compares everything that the lists of interfaces contain, which is all except
// addresses and table.
func sameInterface(a, b RawInterface) bool {
	return a.Index == b.Index && a.Name == b.Name && a.Device == b.Device && a.AdminUp == b.AdminUp && a.LinkUp == b.LinkUp &&
		a.Lender == b.Lender && a.Unnumbered == b.Unnumbered && a.BVI == b.BVI
}
