package nat44

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// sentTo returns the names of the messages that change the model while ops are applied, and the
// addresses of withdrawals.
func sentTo(t *testing.T, m *model, ops []Op) (sent []string) {
	t.Helper()
	m.after = func(msg api.Message) {
		name := strings.TrimPrefix(msg.GetMessageName(), "nat44_")
		if r, ok := msg.(*ip.IPRouteAddDelV2); ok {
			name = fmt.Sprintf("withdraw %s of %d", r.Route.Prefix, r.Route.Src)
		}
		sent = append(sent, name)
	}
	for _, result := range Apply(t.Context(), m, ops) {
		if result.Err != nil || result.Unknown {
			t.Errorf("%s: error %v, unknown %v", result.Op, result.Err, result.Unknown)
		}
	}
	if m.died != "" {
		t.Error(m.died)
	}
	return sent
}

func TestRelease(t *testing.T) {
	const deletion = "add_del_lb_static_mapping"
	web, other := newRow("10.96.0.1:80/TCP", "10.1.1.1:80"), newRow("10.96.0.2:80/TCP", "10.1.1.1:80")
	for _, c := range []struct {
		name   string
		change func(m *model, want *Want)
		sent   []string
	}{
		{"an address without a route", func(*model, *Want) {}, []string{deletion}},
		{"an address of VPP, before the row goes", func(m *model, _ *Want) { m.received[web.Addr] = true }, []string{"withdraw 10.96.0.1/32 of 24", deletion}},
		{"another address of VPP", func(m *model, _ *Want) { m.received[other.Addr] = true }, []string{deletion}},
		{"beneath a better route", func(m *model, _ *Want) { m.above[web.Addr] = fromOthers }, []string{"withdraw 10.96.0.1/32 of 24", deletion}},
		{"an address of an interface", func(m *model, _ *Want) {
			m.above[web.Addr], m.received[web.Addr] = fromInterface, true
		}, []string{deletion}},
		{"a mapping of another client at the address", func(m *model, _ *Want) {
			m.static[mustKey("10.96.0.1:53/UDP")], m.received[web.Addr] = "cni", true
		}, []string{deletion}},
		{"made one of VPP in the same batch", func(_ *model, want *Want) { want.Interfaces[7] = true }, []string{
			"interface_add_del_feature", "interface_add_del_feature", "withdraw 10.96.0.1/32 of 24", deletion,
		}},
		{"left behind", func(m *model, _ *Want) { m.received[netip.MustParseAddr("10.96.0.9")] = true }, []string{deletion, "withdraw 10.96.0.9/32 of 24"}},
		{"that of a row, which others may use", func(m *model, want *Want) {
			m.received[other.Addr], want.Shared = true, sharing(other.Addr)
		}, []string{"withdraw 10.96.0.2/32 of 24", deletion}},
		{"the same, made one of VPP in the same batch", func(_ *model, want *Want) {
			want.Interfaces[7], want.Shared = true, sharing(other.Addr)
		}, []string{
			"interface_add_del_feature", "interface_add_del_feature", "withdraw 10.96.0.2/32 of 24", "withdraw 10.96.0.1/32 of 24", deletion,
		}},
		{"the same, with a mapping of another client", func(m *model, want *Want) {
			m.static[mustKey("10.96.0.2:53/UDP")] = "cni"
			want.Interfaces[7], want.Shared = true, sharing(other.Addr)
		}, []string{"interface_add_del_feature", "interface_add_del_feature", "withdraw 10.96.0.1/32 of 24", deletion}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, want := newModel(), &Want{Rows: byKey(other), Interfaces: map[uint32]bool{1: true}}
			sentTo(t, m, Diff(m.read(t), want, true))
			m.load(web)
			c.change(m, want)
			check(t, "messages", c.sent, sentTo(t, m, Diff(m.read(t), want, true)))
			check(t, "operations left", nil, Diff(m.read(t), want, true))
		})
	}
}

// TestReleaseIsForBalancedRows: VPP takes back the address of a static mapping itself.
func TestReleaseIsForBalancedRows(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	static := row.with(func(r *Row) { r.Kind = Static })
	have := NewState()
	have.Foreign[mustKey("10.96.0.3:80/TCP")], have.Pool = "other client", []netip.Addr{netip.MustParseAddr("10.96.0.4")}
	for _, c := range []struct {
		op   Op
		want bool
	}{
		{Op{Verb: DelRow, Key: row.Key, Row: &row}, true},
		{Op{Verb: DelRow, Key: row.Key, Row: &static}, false},
		{Op{Verb: AddRow, Key: row.Key, Row: &row}, false},
		{Op{Verb: DelRow, Key: mustKey("10.96.0.3:443/TCP"), Row: &row}, false},
		{Op{Verb: DelRow, Key: mustKey("10.96.0.4:443/TCP"), Row: &row}, false},
	} {
		ops := []Op{c.op}
		if Release(have, ops); ops[0].Release != c.want {
			t.Errorf("%s: released %v, want %v", c.op, ops[0].Release, c.want)
		}
	}
}

// silentFIB is a VPP whose answers to questions about routes are an error.
type silentFIB struct {
	*model
	err error
}

func (s silentFIB) Do(ctx context.Context, reqs []api.Message) ([]link.Result, error) {
	if _, asks := reqs[0].(*ip.IPRouteLookupV2); asks {
		return []link.Result{{Err: s.err}}, nil
	}
	return s.model.Do(ctx, reqs)
}

// TestReleaseWithoutAnswer: where VPP does not say what it has at an address nothing is deleted, or
// the address would be left behind. A VPP without the message, or with nothing there, loses the row
// alone.
func TestReleaseWithoutAnswer(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	for _, c := range []struct {
		answer, want error
	}{
		{link.ErrUnknown, link.ErrNotSent},
		{link.ErrNotSent, link.ErrNotSent},
		{nil, link.ErrNotSent}, // of no type that it may have
		{link.ErrUnsupported, nil},
		{&link.RetvalError{Retval: retNoSuchEntry}, nil},
	} {
		m := newModel()
		m.enabled, m.sessions = true, 1000
		m.load(row)
		ops := []Op{{Verb: DelRow, Key: row.Key, Row: &row, Release: true}, {Verb: Forwarding}}
		for _, result := range Apply(t.Context(), silentFIB{m, c.answer}, ops) {
			if !errors.Is(result.Err, c.want) || (result.Err == nil) != (c.want == nil) || result.Unknown {
				t.Errorf("answered with %v: %s: error %v, unknown %v", c.answer, result.Op, result.Err, result.Unknown)
			}
		}
		if _, held := m.rows[row.Key]; held != (c.want != nil) {
			t.Errorf("answered with %v: row there %v", c.answer, held)
		}
	}
}

// TestReadWithoutSources: an old VPP, which cannot list its sources, is read like one that has left
// nothing behind.
func TestReadWithoutSources(t *testing.T) {
	for _, name := range []string{"fib_source_dump", "ip_route_v2_dump"} {
		m := newModel()
		m.enabled, m.sessions = true, 1000
		m.received[loopback] = true
		answer := link.ErrUnsupported
		m.fault = func(msg api.Message) error {
			if msg.GetMessageName() == name {
				return answer
			}
			return nil
		}
		check(t, "received", map[netip.Addr]bool{}, m.read(t).Received)
		answer = link.ErrDown
		if _, err := Read(t.Context(), m); !errors.Is(err, link.ErrDown) {
			t.Errorf("%s: error %v, want %v", name, err, link.ErrDown)
		}
	}
}

// TestReleaseRefused: where VPP keeps the address the row is gone nevertheless; the next read finds
// the address, and it is withdrawn by itself.
func TestReleaseRefused(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	m, want := newModel(), &Want{Rows: byKey(row), Interfaces: map[uint32]bool{1: true}}
	sentTo(t, m, Diff(m.read(t), want, true))
	m.receive(true)
	want.Rows = nil
	m.fault = func(req api.Message) error {
		if _, withdraws := req.(*ip.IPRouteAddDelV2); withdraws {
			return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
		}
		return nil
	}
	results := Apply(t.Context(), m, Diff(m.read(t), want, true))
	if len(results) != 1 || results[0].Op.Verb != DelRow || results[0].Err != nil || !results[0].Unknown || len(m.rows) != 0 {
		t.Fatalf("%+v, rows %v", results, m.rows)
	}
	m.fault = nil
	check(t, "left behind", map[netip.Addr]bool{row.Addr: true}, m.received)
	if ops := Diff(m.read(t), want, true); len(ops) != 1 || ops[0].Verb != Withdraw {
		t.Errorf("operations %v", ops)
	}
	sentTo(t, m, Diff(m.read(t), want, true))
	check(t, "left behind", map[netip.Addr]bool{}, m.received)
}

// TestFreshRowsAreNotReleased: for a row that was added after the last interface, VPP is neither
// asked for its address nor told to withdraw it.
func TestFreshRowsAreNotReleased(t *testing.T) {
	row, late := newRow("10.96.0.1:80/TCP", "10.1.1.1:80"), newRow("10.96.0.2:80/TCP", "10.1.1.1:80")
	deletion := Op{Verb: DelRow, Key: row.Key, Row: &row}
	outside := Op{Verb: AddRoles, Interface: 7, Roles: Both}
	replace := func(s *State) {
		s.Record(deletion)
		s.Record(Op{Verb: AddRow, Key: row.Key, Row: &row})
	}
	reread := func(s *State) *State {
		read := NewState()
		read.Rows = s.Clone().Rows
		return read
	}
	for _, c := range []struct {
		name   string
		change func(s *State) *State
		batch  []Op
		want   bool
	}{
		{"added", func(s *State) *State { return s }, nil, false},
		{"read, and never added", reread, nil, true},
		{"added and read", func(s *State) *State {
			read := reread(s)
			read.Inherit(s)
			return read
		}, nil, false},
		{"read to be one of VPP", func(s *State) *State {
			read := reread(s)
			read.Received[row.Addr] = true
			read.Inherit(s)
			return read
		}, nil, true},
		{"deleted and read, by another", func(s *State) *State {
			read := reread(s)
			delete(read.Rows, row.Key)
			read.Inherit(s)
			read.Rows[row.Key] = row
			return read
		}, nil, true},
		{"first read", func(s *State) *State {
			s.Inherit(nil)
			return s
		}, nil, false},
		{"an interface came", func(s *State) *State {
			s.Record(outside)
			return s
		}, nil, true},
		{"an interface may have come", func(s *State) *State {
			s.Suspect(outside)
			return s
		}, nil, true},
		{"added and replaced", func(s *State) *State {
			replace(s)
			return s
		}, nil, false},
		{"an interface came, and the row was replaced", func(s *State) *State {
			s.Record(outside)
			replace(s)
			return s
		}, nil, true},
		{"the row was replaced after an interface and before the next", func(s *State) *State {
			s.Record(outside)
			s.Record(deletion)
			s.Record(outside)
			s.Record(Op{Verb: AddRow, Key: row.Key, Row: &row})
			return s
		}, nil, true},
		{"an output interface came", func(s *State) *State {
			s.Record(Op{Verb: AddOutput, Interface: 7})
			return s
		}, nil, true},
		{"an interface got the other role", func(s *State) *State {
			s.Record(Op{Verb: AddRoles, Interface: 7, Roles: Inside})
			return s
		}, nil, false},
		{"an interface comes with the batch", func(s *State) *State { return s }, []Op{outside}, true},
		{"another row comes with the batch", func(s *State) *State { return s }, []Op{{Verb: AddRow, Key: late.Key, Row: &late}}, false},
		{"left behind before it came", func(s *State) *State {
			s.Received[row.Addr] = true
			return s
		}, nil, true},
		{"deleted and read back in", func(s *State) *State {
			s.Record(deletion)
			s.Rows[row.Key] = row
			return s
		}, nil, true},
	} {
		have := NewState()
		have.Record(Op{Verb: AddRow, Key: row.Key, Row: &row})
		have = c.change(have)
		before := have.Clone()
		batch := append(c.batch, deletion)
		if Release(have, batch); batch[len(batch)-1].Release != c.want {
			t.Errorf("%s: released %v, want %v", c.name, !c.want, c.want)
		}
		check(t, c.name+": state", before, have)
	}
}

// TestReplacedRowsAreNotReleased: the address is needed again at once.
func TestReplacedRowsAreNotReleased(t *testing.T) {
	row := newRow("10.96.0.1:80/TCP", "10.1.1.1:80")
	have, want := settled(row)
	want.Rows = byKey(withAffinity(row, 60))
	ops := Diff(have, want, true)
	if len(ops) != 2 || ops[0].Verb != DelRow || ops[0].Release {
		t.Errorf("operations %+v", ops)
	}
}

// sharing are the shared addresses of a Want.
func sharing(addr netip.Addr) func() map[netip.Addr]bool {
	return func() map[netip.Addr]bool { return map[netip.Addr]bool{addr: true} }
}
