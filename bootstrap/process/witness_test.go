package process

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/nat44_ed"
)

// written is one change that VPP was asked for.
type written struct {
	// "address:port/protocol" of a row, the key of a route, "" for other changes
	key  string
	what string
}

// witness sees every request to VPP.
type witness struct {
	mu       sync.Mutex
	requests int // since the fuse was lit
	writes   int
	log      []written
	fuse     func(requests, writes int) bool // nil = no kill
	strike   func()
	all      int
}

// observe is the hook of the simulated VPP, which is locked meanwhile: who is struck here dies
// before VPP has worked on the next request.
func (w *witness) observe(req api.Message, changes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if changes {
		w.writes++
		w.all++
		w.log = append(w.log, written{keyOf(req), describe(req)})
	}
	if w.fuse != nil && w.fuse(w.requests, w.writes) {
		w.strike()
		w.fuse = nil
	}
}

// light arms the fuse and counts from now on.
func (w *witness) light(strike func(), fuse func(requests, writes int) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.writes, w.fuse, w.strike = 0, 0, fuse, strike
}

// quench disarms it and reports whether it has burnt.
func (w *witness) quench() (struck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	struck = w.fuse == nil
	w.fuse = nil
	return struck
}

// take returns what was written since the last time.
func (w *witness) take() []written {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log
	w.log = nil
	return log
}

// wrote reports whether a key was written since the last time.
func (w *witness) wrote(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.log, func(c written) bool { return c.key == key })
}

// total is the number of changes that VPP was asked for.
func (w *witness) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// Beginnings of keys: of a FIB source, and of a session, by its client as the endpoint sees it.
const (
	sourcePrefix  = "FIB source "
	sessionPrefix = "session "
)

func keyOf(req api.Message) string {
	text := func(a [4]byte, port uint16, proto uint8) string {
		return fmt.Sprintf("%s/%d", netip.AddrPortFrom(netip.AddrFrom4(a), port), proto)
	}
	switch m := req.(type) {
	case *nat44_ed.Nat44AddDelLbStaticMapping:
		return text(m.ExternalAddr, m.ExternalPort, m.Protocol)
	case *nat44_ed.Nat44LbStaticMappingAddDelLocal:
		return text(m.ExternalAddr, m.ExternalPort, m.Protocol)
	case *nat44_ed.Nat44DelSession:
		return sessionPrefix + text(m.ExtHostAddress, m.ExtHostPort, m.Protocol)
	case *fib.FibSourceAdd:
		return sourcePrefix + m.Src.Name
	case *ip.IPRouteAddDelV2:
		if m.Route.Src == natSource {
			return addressOf(m.Route.Prefix.ToIPNet().IP.String())
		}
		return routeTo(m.Route.Prefix.String())
	}
	return ""
}

// natSource is the id of NAT44's FIB source (nat-low) in the simulated VPP: what it says about an
// address goes with a row.
const natSource = 24

// addressOf is the key of what NAT44 says about an address.
func addressOf(address string) string { return "address " + address }

// routeTo is the key of a route.
func routeTo(prefix string) string { return "route " + prefix }

// keyOfRow is the key of a row as the simulated VPP describes it.
func keyOfRow(row string) string {
	key, _, _ := strings.Cut(row, " ")
	return key
}

func describe(req api.Message) string { return fmt.Sprintf("%s %+v", req.GetMessageName(), req) }

// aboutLists reports whether a change is one of access lists.
func (w written) aboutLists() bool { return strings.HasPrefix(w.what, "acl_") }
