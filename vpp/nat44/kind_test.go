package nat44

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// mappings returns one row of each kind that balances nothing.
func mappings() (static, identity, port Row) {
	tag := Tag{Hash: ExternalHash()}.String()
	at, pod := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("10.1.1.5")
	static = Row{Key: rule.Key{Addr: at}, Kind: Static, Tag: tag, Locals: []Local{{Addr: pod, Weight: 1}}}
	identity = Row{Key: rule.Key{Addr: at}, Kind: Identity, Tag: tag, Locals: []Local{{Addr: at, Weight: 1}}}
	port = Row{Key: rule.Key{Addr: at, Port: 4789, Proto: rule.UDP}, Kind: Identity, Tag: tag, Locals: []Local{{Addr: at, Port: 4789, Weight: 1}}}
	return static, identity, port
}

func TestKindsOnTheWire(t *testing.T) {
	static, identity, port := mappings()
	at := [4]byte{203, 0, 113, 1}
	for _, c := range []struct {
		verb Verb
		row  Row
		want api.Message
		text string
	}{
		{AddRow, static, &nat44_ed.Nat44AddDelStaticMappingV2{
			IsAdd: true, Flags: nat_types.NAT_IS_ADDR_ONLY, LocalIPAddress: [4]byte{10, 1, 1, 5}, ExternalIPAddress: at,
			ExternalSwIfIndex: noInterface, Tag: static.Tag,
		}, "add static mapping 203.0.113.1 -> 10.1.1.5"},
		{DelRow, static, &nat44_ed.Nat44AddDelStaticMappingV2{
			Flags: nat_types.NAT_IS_ADDR_ONLY, LocalIPAddress: [4]byte{10, 1, 1, 5}, ExternalIPAddress: at, ExternalSwIfIndex: noInterface,
		}, "delete static mapping 203.0.113.1"},
		{AddRow, identity, &nat44_ed.Nat44AddDelIdentityMapping{
			IsAdd: true, Flags: nat_types.NAT_IS_ADDR_ONLY, IPAddress: at, SwIfIndex: noInterface, Tag: static.Tag,
		}, "add identity mapping 203.0.113.1"},
		{DelRow, port, &nat44_ed.Nat44AddDelIdentityMapping{IPAddress: at, Port: 4789, Protocol: rule.UDP, SwIfIndex: noInterface}, "delete identity mapping 203.0.113.1:4789/UDP"},
	} {
		op := Op{Verb: c.verb, Key: c.row.Key, Row: &c.row}
		check(t, c.text, []api.Message{c.want}, Messages(op))
		check(t, "text", c.text, op.Describe())
		if err := op.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestKindsAreRead: mappings with our tag are rows, mappings of others are occupied keys. A mapping
// that we never make is not read as a row of ours.
func TestKindsAreRead(t *testing.T) {
	static, identity, port := mappings()
	state := NewState()
	at := [4]byte{203, 0, 113, 1}
	details := nat44_ed.Nat44StaticMappingDetails{
		Flags: nat_types.NAT_IS_ADDR_ONLY, LocalIPAddress: [4]byte{10, 1, 1, 5}, ExternalIPAddress: at, Protocol: 255, Tag: static.Tag,
	}
	addStatic(state, &details)
	addIdentity(state, &nat44_ed.Nat44IdentityMappingDetails{IPAddress: at, Port: 4789, Protocol: rule.UDP, Tag: static.Tag})
	check(t, "rows", map[rule.Key]Row{static.Key: static, port.Key: port}, state.Rows)
	addIdentity(state, &nat44_ed.Nat44IdentityMappingDetails{Flags: nat_types.NAT_IS_ADDR_ONLY, IPAddress: at, Tag: static.Tag})
	if got := state.Rows[identity.Key]; !got.Equal(identity) || len(state.Foreign) != 0 {
		t.Errorf("read %+v, foreign %v", got, state.Foreign)
	}
	for name, change := range map[string]func(*nat44_ed.Nat44StaticMappingDetails){
		"another VRF": func(d *nat44_ed.Nat44StaticMappingDetails) { d.VrfID = 7 },
		"a port": func(d *nat44_ed.Nat44StaticMappingDetails) {
			d.Flags, d.ExternalPort, d.LocalPort, d.Protocol = 4, 80, 80, rule.TCP
		},
	} {
		odd, state := details, NewState()
		change(&odd)
		addStatic(state, &odd)
		for k, row := range state.Rows {
			if row.Equal(static) || row.Equal(row) || k.Addr != static.Addr {
				t.Errorf("%s: read as %+v", name, row)
			}
		}
		if len(state.Rows) != 1 {
			t.Errorf("%s: rows %v", name, state.Rows)
		}
	}
}

// TestKindsAreReplaced: they cannot be changed in place, and a mapping that is as wanted is not
// touched.
func TestKindsAreReplaced(t *testing.T) {
	static, identity, port := mappings()
	moved := static
	moved.Locals = []Local{{Addr: netip.MustParseAddr("10.1.1.6"), Weight: 1}}
	balanced := newRow("203.0.113.1:4789/UDP", "10.1.1.1:80")
	for _, c := range []struct {
		have, want Row
		verbs      []Verb
	}{
		{static, static, nil},
		{port, port, nil},
		{static, moved, []Verb{DelRow, AddRow}},
		{static, identity, []Verb{DelRow, AddRow}},
		{port, balanced, []Verb{DelRow, AddRow}},
		{balanced, port, []Verb{DelRow, AddRow}},
	} {
		var got []Verb
		for _, op := range DiffRow(&c.have, &c.want) {
			got = append(got, op.Verb)
		}
		check(t, c.have.Kind.String()+" to "+c.want.Kind.String(), c.verbs, got)
	}
}

func TestExternalTags(t *testing.T) {
	static, _, _ := mappings()
	if !External(static.Tag) || External(newRow("10.96.0.1:80/TCP", "10.1.1.1:80").Tag) || External("theirs") || External("") {
		t.Error("tags of external configuration are not told from others")
	}
}

// TestOutputs: an interface is an output interface or has roles, never both; output interfaces of
// others are left alone.
func TestOutputs(t *testing.T) {
	state := NewState()
	state.Enabled, state.Forwarding, state.Timeouts = true, true, DefaultTimeouts()
	state.Roles[1], state.Roles[2], state.Output[3], state.Output[4] = Both, Inside, true, true
	state.Pool = []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("203.0.113.8")}
	want := &Want{
		Interfaces: map[uint32]bool{1: true, 2: false, 3: true, 4: true}, Outputs: map[uint32]bool{1: true, 2: true, 3: false},
		Globals: Globals{Pool: []netip.Addr{netip.MustParseAddr("203.0.113.9")}, RetiredPool: []netip.Addr{netip.MustParseAddr("203.0.113.8")}},
	}
	var texts []string
	ops := Diff(state, want, true)
	for _, op := range ops {
		texts = append(texts, op.Describe())
	}
	check(t, "operations", []string{
		"add NAT address 203.0.113.9", "delete roles inside+outside from interface 1", "make interface 1 an output interface",
		"delete roles inside from interface 2", "make interface 2 an output interface", "make interface 3 no output interface any more",
		"add roles inside+outside to interface 3", "delete NAT address 203.0.113.8",
	}, texts)
	for _, op := range ops {
		state.Record(op)
	}
	if again := Diff(state, want, true); len(again) > 0 {
		t.Errorf("left are %v", again)
	}
	check(t, "pool", []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("203.0.113.9")}, state.Pool)
}

// TestMasqueradeClashes: the twice-NAT address is in the SNAT pool while the pool has no other one,
// and leaves it when another address replaces it.
func TestMasqueradeClashes(t *testing.T) {
	ours, before, theirs := netip.MustParseAddr("10.1.1.254"), netip.MustParseAddr("10.1.1.253"), netip.MustParseAddr("203.0.113.7")
	on := Globals{TwiceNAT: ours, MasqueradeClashes: true}
	with := func(change func(*Globals)) Globals {
		g := on
		change(&g)
		return g
	}
	for name, c := range map[string]struct {
		pool []netip.Addr
		want Globals
		ops  []string
	}{
		"added":             {nil, on, []string{"add NAT address 10.1.1.254"}},
		"kept":              {[]netip.Addr{ours}, on, nil},
		"off":               {nil, Globals{TwiceNAT: ours}, nil},
		"no address":        {nil, Globals{MasqueradeClashes: true}, nil},
		"another owner":     {[]netip.Addr{theirs}, on, nil},
		"another owner now": {[]netip.Addr{ours, theirs}, on, []string{"delete NAT address 10.1.1.254"}},
		"replaced": {
			[]netip.Addr{before},
			with(func(g *Globals) { g.Retired = []netip.Addr{before} }),
			[]string{"add NAT address 10.1.1.254", "delete NAT address 10.1.1.253"},
		},
		"SNAT": {
			[]netip.Addr{ours},
			with(func(g *Globals) { g.Pool = []netip.Addr{theirs} }),
			[]string{"add NAT address 203.0.113.7", "delete NAT address 10.1.1.254"},
		},
		"SNAT ends": {
			[]netip.Addr{theirs},
			with(func(g *Globals) { g.RetiredPool = []netip.Addr{theirs} }),
			[]string{"add NAT address 10.1.1.254", "delete NAT address 203.0.113.7"},
		},
	} {
		state := NewState()
		state.Enabled, state.Forwarding, state.Timeouts, state.TwiceNAT, state.Pool = true, true, DefaultTimeouts(), []netip.Addr{ours}, c.pool
		var texts []string
		for _, op := range DiffGlobals(state, &Want{Globals: c.want}) {
			texts = append(texts, op.Describe())
			state.Record(op)
		}
		check(t, name, c.ops, texts)
		if again := DiffGlobals(state, &Want{Globals: c.want}); len(again) > 0 {
			t.Errorf("%s: left are %v", name, again)
		}
	}
}

// TestOneWorker: the first worker does NAT, unless all are wanted or VPP has mappings already.
func TestOneWorker(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	for name, c := range map[string]struct {
		workers int
		all     bool
		rows    map[rule.Key]Row
		foreign map[rule.Key]string
		spread  bool
		ops     []string
	}{
		"no workers":          {},
		"one already":         {workers: 1},
		"several":             {workers: 4, ops: []string{"leave NAT to the first worker"}},
		"all wanted":          {workers: 4, all: true, spread: true},
		"with rows":           {workers: 4, rows: map[rule.Key]Row{row.Key: row}, spread: true},
		"with rows of others": {workers: 4, foreign: map[rule.Key]string{row.Key: "theirs"}, spread: true},
	} {
		state := NewState()
		state.Enabled, state.Forwarding, state.Timeouts, state.Workers, state.Rows, state.Foreign = true, true, DefaultTimeouts(), c.workers, c.rows, c.foreign
		check(t, name+": spread", c.spread, state.Spread(c.all))
		var texts []string
		for _, op := range DiffGlobals(state, &Want{Globals: Globals{AllWorkers: c.all}}) {
			texts = append(texts, op.Describe())
			state.Record(op)
		}
		check(t, name, c.ops, texts)
		if again := DiffGlobals(state, &Want{Globals: Globals{AllWorkers: c.all}}); len(again) > 0 {
			t.Errorf("%s: left are %v", name, again)
		}
	}
}
