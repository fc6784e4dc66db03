package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/forwarding"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// model is a small semantic model of the FIB of VPP 25.10, as far as sources of routes go. It is a
// link.Caller. vpp/simulator is the full one; this one exists so that the package is tested against
// rules that are written down beside it.
type model struct {
	registered []fib.FibSource // by id
	entries    map[netip.Prefix]map[uint8]fib_types.FibPathType
	died       string
	sent       []string          // names of the messages that change something
	cli        map[string]string // answers to commands
	// fault decides the fate of a message before it is executed.
	fault func(api.Message) error
	// before is called with every dump.
	before func(api.Message)
}

var _ link.Caller = (*model)(nil)

// Ids of some sources.
const (
	fromInterface = 4
	fromAPI       = 8
	fromNeighbour = 15
	fromNAT       = 24
	fromDefault   = 29
)

func newModel() *model {
	m := &model{entries: map[netip.Prefix]map[uint8]fib_types.FibPathType{}}
	builtin := map[int]fib.FibSource{
		0: {Name: "invalid", Priority: 0xff}, fromInterface: {Name: "interface", Priority: 3}, fromAPI: {Name: "API", Priority: 0x80},
		fromNeighbour: {Name: "adjacency", Priority: 0xd0}, fromNAT: {Name: "nat-low", Priority: 0xd0},
	}
	for id := range 26 {
		s, named := builtin[id]
		if !named {
			s = fib.FibSource{Name: fmt.Sprintf("source-%d", id), Priority: 0xf0}
		}
		s.ID = uint8(id)
		m.registered = append(m.registered, s)
	}
	return m
}

// register registers a source and returns its id.
func (m *model) register(name string, priority uint8) uint8 {
	if len(m.registered) == 255 {
		return 0
	}
	id := uint8(len(m.registered))
	m.registered = append(m.registered, fib.FibSource{ID: id, Name: name, Priority: priority})
	return id
}

// set adds the route of a source for a prefix.
func (m *model) set(prefix netip.Prefix, id uint8, kind fib_types.FibPathType) {
	if m.entries[prefix] == nil {
		m.entries[prefix] = map[uint8]fib_types.FibPathType{}
	}
	m.entries[prefix][id] = kind
}

// unset takes it back.
func (m *model) unset(prefix netip.Prefix, id uint8) {
	if delete(m.entries[prefix], id); len(m.entries[prefix]) == 0 {
		delete(m.entries, prefix)
	}
}

// best returns the source that wins a prefix; of two with one priority, the earlier one.
func (m *model) best(prefix netip.Prefix) (uint8, bool) {
	var ids []uint8
	for id := range m.entries[prefix] {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return 0, false
	}
	return slices.MinFunc(ids, func(a, b uint8) int {
		return cmp.Or(cmp.Compare(m.registered[a].Priority, m.registered[b].Priority), cmp.Compare(a, b))
	}), true
}

// wins returns the path that VPP uses for exactly this prefix, and its source.
func (m *model) wins(prefix netip.Prefix) (uint8, fib_types.FibPathType) {
	id, found := m.best(prefix)
	if !found {
		return 0, 0
	}
	return id, m.entries[prefix][id]
}

// Do implements link.Caller.
func (m *model) Do(_ context.Context, reqs []api.Message) ([]link.Result, error) {
	results := make([]link.Result, len(reqs))
	for i, req := range reqs {
		results[i] = m.one(req)
	}
	return results, nil
}

func (m *model) one(req api.Message) link.Result {
	if m.fault != nil {
		if err := m.fault(req); err != nil {
			return link.Result{Err: err}
		}
	}
	switch r := req.(type) {
	case *fib.FibSourceAdd:
		m.sent = append(m.sent, r.GetMessageName())
		return link.Result{Reply: &fib.FibSourceAddReply{ID: m.register(r.Src.Name, r.Src.Priority)}}
	case *ip.IPRouteAddDelV2:
		m.sent = append(m.sent, r.GetMessageName())
		m.route(r)
		return link.Result{Reply: &ip.IPRouteAddDelV2Reply{}}
	case *ip.IPRouteLookupV2:
		return m.lookup(r)
	case *vlib.CliInband:
		if m.cli == nil { // no session layer
			return link.Result{Err: &link.RetvalError{Message: r.GetMessageName(), Retval: -1}}
		}
		return link.Result{Reply: &vlib.CliInbandReply{Reply: m.cli[r.Cmd]}}
	default:
		panic(fmt.Sprintf("the model does not know %T", req))
	}
}

func (m *model) route(r *ip.IPRouteAddDelV2) {
	prefix, id := forwarding.FromPrefix(r.Route.Prefix), r.Route.Src
	switch {
	case id == 0:
		m.died = "a route of ours was given to the API"
	case int(id) >= len(m.registered):
		m.died = fmt.Sprintf("route of source %d, which does not exist", id)
	case m.registered[id].Name != "troupe" && m.registered[id].Name != "troupe-yield":
		m.died = fmt.Sprintf("route of %s was touched", m.registered[id].Name)
	case r.IsAdd:
		m.set(prefix, id, r.Route.Paths[0].Type)
	default:
		m.unset(prefix, id)
	}
}

func (m *model) lookup(r *ip.IPRouteLookupV2) link.Result {
	prefix := forwarding.FromPrefix(r.Prefix)
	id, found := m.best(prefix)
	for r.Exact == 0 && !found && prefix.Bits() > 0 {
		prefix = netip.PrefixFrom(prefix.Addr(), prefix.Bits()-1).Masked()
		id, found = m.best(prefix)
	}
	switch {
	case found:
		return link.Result{Reply: &ip.IPRouteLookupV2Reply{Route: m.detail(prefix, id)}}
	case r.Exact == 0: // the default route is always there
		return link.Result{Reply: &ip.IPRouteLookupV2Reply{Route: ip.IPRouteV2{Prefix: forwarding.Prefix(prefix), Src: fromDefault}}}
	default:
		return link.Result{Err: &link.RetvalError{Message: r.GetMessageName(), Retval: -6}}
	}
}

func (m *model) detail(prefix netip.Prefix, id uint8) ip.IPRouteV2 {
	return ip.IPRouteV2{
		Prefix: forwarding.Prefix(prefix), Src: id, NPaths: 1, Paths: []fib_types.FibPath{{Type: m.entries[prefix][id], SwIfIndex: noInterface}},
	}
}

// Dump implements link.Caller.
func (m *model) Dump(_ context.Context, req api.Message, each func(api.Message)) error {
	if m.before != nil {
		m.before(req)
	}
	if m.fault != nil {
		if err := m.fault(req); err != nil {
			return err
		}
	}
	switch r := req.(type) {
	case *fib.FibSourceDump:
		for _, s := range m.registered {
			each(&fib.FibSourceDetails{Src: s})
		}
	case *ip.IPRouteV2Dump:
		for prefix := range m.entries {
			if id, _ := m.best(prefix); id == r.Src && prefix.Addr().Is6() == r.Table.IsIP6 {
				each(&ip.IPRouteV2Details{Route: m.detail(prefix, id)})
			}
		}
	default:
		return errors.New("the model does not know this dump")
	}
	return nil
}

// read reads the state, for the wanted and the formerly held prefixes.
func (m *model) read(t fataler, before *State, want Want) *State {
	t.Helper()
	state, err := Read(context.Background(), m, before.Prefixes(want), nil)
	if err != nil {
		t.Fatal(err)
	}
	state.Inherit(before)
	return state
}

// fataler is what testing.TB and rapid.T have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// apply applies operations, each of which has to succeed, and records them.
func (m *model) apply(t fataler, have *State, ops []Op) {
	t.Helper()
	for _, result := range Apply(context.Background(), m, ops) {
		if result.Err != nil || result.Unknown {
			t.Fatalf("%s: error %v, unknown %v", result.Op, result.Err, result.Unknown)
		}
		have.Record(result.Op)
	}
	if m.died != "" {
		t.Fatalf("VPP died: %s; operations\n%v", m.died, ops)
	}
}

// TestModelIsStrict: the model refuses what the package must never do.
func TestModelIsStrict(t *testing.T) {
	for name, id := range map[string]uint8{"no source": 0, "unregistered": 200, "the API's": fromAPI} {
		m := newModel()
		m.one(Message(Op{Verb: Add, Prefix: pfx("10.96.0.0/16"), Route: plainReject, Source: id}))
		if m.died == "" {
			t.Errorf("%s: a route of source %d is accepted", name, id)
		}
	}
}
