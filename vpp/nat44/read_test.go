package nat44

import (
	"errors"
	"net/netip"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

func TestReadDisabled(t *testing.T) {
	m := newModel()
	m.fault = func(msg api.Message) error {
		switch msg.(type) {
		case *nat44_ed.Nat44ShowRunningConfig, *nat44_ed.NatWorkerDump:
		default:
			t.Errorf("%s was sent to a disabled plugin", msg.GetMessageName())
		}
		return nil
	}
	check(t, "state", NewState(), m.read(t))
	m.workers = 3
	want := NewState()
	want.Workers = 3
	check(t, "state with workers", want, m.read(t))
}

func TestRead(t *testing.T) {
	m := newModel()
	m.enabled, m.sessions, m.forwarding = true, 5000, true
	m.timeouts.UDP, m.timeouts.TCPEstablished, m.timeouts.TCPTransitory, m.timeouts.ICMP = 1, 2, 3, 4
	m.twice = []netip.Addr{loopback}
	m.roles = map[uint32]Roles{1: Both, 2: Inside, 3: Outside}
	m.output = map[uint32]bool{4: true}
	m.static[mustKey("10.96.0.9:80/TCP")] = "cni"
	web, dns := newRow("10.96.0.1:80/TCP", "10.1.1.2:80", "10.1.1.1:80"), withAffinity(newRow("10.96.0.10:53/UDP", "10.1.1.3:53"), 10800)
	lone := newRow("10.96.0.11:53/UDP", "10.1.1.3:53")
	lone.Pads = false
	theirs := newRow("10.96.0.12:80/TCP", "10.1.1.1:80")
	theirs.Tag = "other client"
	m.load(web, dns, lone, theirs)

	want := NewState()
	want.Enabled, want.Sessions, want.Forwarding, want.Timeouts = true, 5000, true, Timeouts{1, 2, 3, 4}
	want.TwiceNAT, want.Roles, want.Output = m.twice, m.roles, m.output
	want.Rows = byKey(web, dns, lone)
	want.Foreign = map[rule.Key]string{
		mustKey("10.96.0.9:80/TCP"):  `static mapping "cni"`,
		mustKey("10.96.0.12:80/TCP"): `load-balancing mapping "other client"`,
	}
	check(t, "state", want, m.read(t))
}

// TestReadOddRows: rows with our tag that this version of the agent never makes are ours, and equal
// no row.
func TestReadOddRows(t *testing.T) {
	for name, change := range map[string]func(*modelRow){
		"tag of another version": func(r *modelRow) { r.tag = TagPrefix + "v2/xyz" },
		"pad twice":              func(r *modelRow) { r.locals[2] = r.locals[1] },
		"pad in another VRF":     func(r *modelRow) { r.locals[1].VrfID = 1 },
		"same backend twice":     func(r *modelRow) { r.locals = append(r.locals, r.locals[0]) },
		"other flag":             func(r *modelRow) { r.flags |= 8 },
	} {
		t.Run(name, func(t *testing.T) {
			m, row := newModel(), newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
			m.enabled, m.sessions = true, 1000
			m.load(row)
			if got := m.read(t).Rows[row.Key]; !got.Equal(row) {
				t.Fatalf("the row itself is read as %+v", got)
			}
			change(m.rows[row.Key])
			got, found := m.read(t).Rows[row.Key]
			if !found || got.Equal(row) || got.Equal(got) {
				t.Errorf("read as %+v, found %v", got, found)
			}
			ops := DiffRow(&got, &row)
			if len(ops) != 2 || ops[0].Verb != DelRow || ops[1].Verb != AddRow {
				t.Errorf("operations %v", ops)
			}
		})
	}
}

// TestReadTemplates: mappings of a whole address occupy a key without a port, templates of
// interface-bound mappings occupy none.
func TestReadTemplates(t *testing.T) {
	state := NewState()
	addStatic(state, &nat44_ed.Nat44StaticMappingDetails{ExternalIPAddress: [4]byte{10, 0, 0, 1}, Flags: 8})
	addStatic(state, &nat44_ed.Nat44StaticMappingDetails{ExternalPort: 80, Protocol: rule.TCP})
	addIdentity(state, &nat44_ed.Nat44IdentityMappingDetails{IPAddress: [4]byte{10, 0, 0, 1}, Flags: 8, Protocol: rule.UDP})
	whole := rule.Key{Addr: netip.MustParseAddr("10.0.0.1")}
	check(t, "foreign keys", map[rule.Key]string{whole: "identity mapping"}, state.Foreign)
	addIdentity(state, &nat44_ed.Nat44IdentityMappingDetails{IPAddress: [4]byte{10, 0, 0, 1}, Port: 4789, Protocol: rule.UDP})
	check(t, "foreign keys", map[rule.Key]string{whole: "identity mapping", mustKey("10.0.0.1:4789/UDP"): "identity mapping"}, state.Foreign)
	addAddress(state, &nat44_ed.Nat44AddressDetails{IPAddress: [4]byte{10, 0, 0, 1}})
	check(t, "pool", []netip.Addr{netip.MustParseAddr("10.0.0.1")}, state.Pool)
}

func TestReadFails(t *testing.T) {
	for _, name := range []string{
		"nat44_show_running_config", "nat44_interface_dump", "nat44_ed_output_interface_get", "nat44_address_dump",
		"nat44_static_mapping_dump", "nat44_identity_mapping_dump", "nat44_lb_static_mapping_dump",
	} {
		m := newModel()
		m.enabled, m.sessions = true, 1000
		m.fault = func(msg api.Message) error {
			if msg.GetMessageName() == name {
				return link.ErrUnsupported
			}
			return nil
		}
		if state, err := Read(t.Context(), m); !errors.Is(err, link.ErrUnsupported) || name != "nat44_show_running_config" && state != nil {
			t.Errorf("without %s: state %v, error %v", name, state, err)
		}
	}
}

// TestTablesAreKept: the tables of backends are sent, read and recorded; a change of the table of
// one backend out of several is two messages, and a row that VPP holds is adopted as it is.
func TestTablesAreKept(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80", "10.1.1.2:80")
	row.Locals[1].Table = 2
	m := newModel()
	m.enabled, m.sessions = true, 1000
	m.load(row)
	for i, l := range m.rows[row.Key].live() {
		if want := map[int]uint32{2: 2}[i]; l.VrfID != want {
			t.Errorf("entry %d is in table %d, want %d", i, l.VrfID, want)
		}
	}
	state := m.read(t)
	held := state.Rows[row.Key]
	if !held.Equal(row) || len(DiffRow(&held, &row)) > 0 {
		t.Fatalf("read %+v", held)
	}
	moved := row.clone()
	moved.Locals[0].Table = 2
	ops := DiffRow(&held, &moved)
	if len(ops) != 1 || len(Messages(ops[0])) != 2 {
		t.Fatalf("operations %v", ops)
	}
	for _, result := range Apply(t.Context(), m, ops) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	if got := m.read(t).Rows[row.Key]; !got.Equal(moved) || got.slots != nil {
		t.Errorf("VPP holds %+v", got)
	}
	if state.Record(ops...); !state.Rows[row.Key].Equal(moved) {
		t.Errorf("recorded %+v", state.Rows[row.Key])
	}
}
