package contract

import (
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

var rowCases = []contractCase{
	{"row/add, again, delete, again", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		v.expect(t, valueExist, row(local(1), local(2)))
		v.expect(t, valueExist, row(local(3), local(4)))
		check(t, "backends", []byte{1, 2}, hosts(onlyRow(t, v)))
		v.expect(t, ok, noRow())
		v.expect(t, noSuchEntry, noRow())
		check(t, "rows", nil, rows(t, v))
	}},
	{"row/port and protocol belong to the key", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		udp, port := row(local(1), local(2)), row(local(1), local(2))
		udp.Protocol, port.ExternalPort = rule.UDP, 81
		v.expect(t, ok, udp)
		v.expect(t, ok, port)
		if n := len(rows(t, v)); n != 3 {
			t.Errorf("%d rows", n)
		}
	}},
	{"row/fewer than two backends", func(t *testing.T, v *rig) {
		raw := realvpp.NewRaw(t, v.Socket())
		v.expect(t, ok, enable)
		if got := raw.Retval(t, row(local(1))); got != invalidValue {
			t.Errorf("one backend: %d", got)
		}
		if got := raw.Retval(t, row()); got != invalidValue {
			t.Errorf("no backend: %d", got)
		}
		check(t, "rows", nil, rows(t, v))
		v.expect(t, ok, row(local(1), local(2)))
		if got := raw.Retval(t, row(local(1))); got != valueExist {
			t.Errorf("one backend under a key that exists: %d", got)
		}
	}},
	{"row/same backend twice", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(1)))
		check(t, "backends", []byte{1, 1}, hosts(onlyRow(t, v)))
		v.expect(t, unspecified, delLocal(local(1)))
		v.expect(t, valueExist, addLocal(local(1)))
	}},
	{"row/255 entries", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		full := wanted(t, "10.96.0.1:80/TCP", nat44.MaxBackends)
		v.expect(t, ok, add(full))
		if got := len(onlyRow(t, v).Locals); got != nat44.MaxEntries {
			t.Errorf("%d entries", got)
		}
		if got := v.read(t).Rows[full.Key]; !got.Equal(full) {
			t.Errorf("read as %+v", got)
		}
	}},
	{"row/dump", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		msg := row(local(1), local(2))
		msg.Tag, msg.Affinity, msg.Flags = strings.Repeat("t", 63), 10800, out2in|nat_types.NAT_IS_SELF_TWICE_NAT
		msg.Locals[1].Port, msg.Locals[1].Probability = 8081, 0
		v.expect(t, ok, msg)
		check(t, "row", &nat44_ed.Nat44LbStaticMappingDetails{
			ExternalAddr: vip, ExternalPort: 80, Protocol: rule.TCP, Flags: out2in | nat_types.NAT_IS_SELF_TWICE_NAT,
			Affinity: 0, Tag: strings.Repeat("t", 63), LocalNum: 2, Locals: msg.Locals,
		}, onlyRow(t, v))
	}},
	{"row/tag without room for its end", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		msg := row(local(1), local(2))
		msg.Tag = strings.Repeat("t", 64)
		v.refused(t, msg)
		if got := realvpp.NewRaw(t, v.Socket()).Retval(t, msg); got != ok {
			t.Errorf("returned %d", got)
		}
		check(t, "tag", strings.Repeat("t", 63), onlyRow(t, v).Tag)
	}},
	{"row/no tag", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		msg := row(local(1), local(2))
		msg.Tag = ""
		v.expect(t, ok, msg)
		check(t, "tag", "", onlyRow(t, v).Tag)
	}},
	{"row/flags", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		const twice, self = nat_types.NAT_IS_TWICE_NAT, nat_types.NAT_IS_SELF_TWICE_NAT
		for sent, stored := range map[nat_types.NatConfigFlags]nat_types.NatConfigFlags{
			out2in: out2in, out2in | twice: out2in | twice, out2in | self: out2in | self, out2in | twice | self: out2in | twice,
			out2in | nat_types.NAT_IS_STATIC | nat_types.NAT_IS_ADDR_ONLY: out2in,
		} {
			msg := row(local(1), local(2))
			msg.Flags = sent
			v.expect(t, ok, msg)
			check(t, sent.String(), stored, onlyRow(t, v).Flags)
			v.expect(t, ok, noRow())
		}
	}},
	{"row/without out2in-only it needs the address in the pool", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		msg := row(local(1), local(2))
		msg.Flags = 0
		v.expect(t, noSuchEntry, msg)
		check(t, "rows", nil, rows(t, v))
	}},
	{"row/delete needs neither backends nor tag", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		msg := row(local(7), local(8), local(9))
		msg.IsAdd, msg.Tag = false, "another"
		v.expect(t, ok, msg)
		check(t, "rows", nil, rows(t, v))
	}},
	{"row/protocols are not checked", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		for _, protocol := range []uint8{132, 17, 1, 0} {
			msg := row(local(1), local(2))
			msg.Protocol = protocol
			v.expect(t, ok, msg)
		}
		if n := len(rows(t, v)); n != 4 {
			t.Errorf("%d rows", n)
		}
	}},
	{"row/a backend may have many rows", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		for port := uint16(80); port < 85; port++ {
			msg := row(local(1), local(2))
			msg.ExternalPort = port
			v.expect(t, ok, msg)
		}
		v.expect(t, ok, noRow())
		if n := len(rows(t, v)); n != 4 {
			t.Errorf("%d rows", n)
		}
	}},
	{"row/the VIP may be the twice-NAT address", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, twiceNAT(vip, vip))
		v.expect(t, ok, row(local(1), local(2)))
	}},
}

var localCases = []contractCase{
	{"local/add and delete", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		v.expect(t, ok, addLocal(local(3)))
		check(t, "backends", []byte{1, 2, 3}, hosts(onlyRow(t, v)))
		v.expect(t, ok, delLocal(local(2)))
		check(t, "backends", []byte{1, 3}, hosts(onlyRow(t, v)))
		v.expect(t, ok, addLocal(local(4)))
		check(t, "backends, the new one in the old place", []byte{1, 4, 3}, hosts(onlyRow(t, v)))
	}},
	{"local/not in place", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, noSuchEntry, addLocal(local(1)))
		v.expect(t, noSuchEntry, delLocal(local(1)))
		v.expect(t, ok, row(local(1), local(2)))
		v.expect(t, noSuchEntry, delLocal(local(3)))
		v.expect(t, unspecified, delLocal(local(1)))
		other := local(1)
		other.Port = 8081
		v.expect(t, noSuchEntry, delLocal(other))
		v.expect(t, ok, addLocal(other))
	}},
	{"local/weight does not change in place", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		heavy := local(1)
		heavy.Probability = 100
		v.expect(t, valueExist, addLocal(heavy))
		if got := onlyRow(t, v).Locals[0].Probability; got != 7 {
			t.Errorf("weight %d", got)
		}
	}},
	{"local/pads make room for one backend", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, add(wanted(t, "10.96.0.1:80/TCP", 1)))
		check(t, "a backend, its pad, an empty slot", []byte{0, 1, 2, 2}, hosts(onlyRow(t, v)))
		empty := nat44_ed.Nat44LbAddrPort{Addr: [4]byte{192, 0, 2, 2}, Port: 3}
		v.expect(t, ok, delLocal(empty))
		v.expect(t, ok, addLocal(local(9)))
		check(t, "backends", []byte{0, 1, 9, 2}, hosts(onlyRow(t, v)))
		v.expect(t, ok, delLocal(local(9)))
		v.expect(t, ok, addLocal(empty))
		if got := v.read(t).Rows[key(t, "10.96.0.1:80/TCP")]; !got.Equal(wanted(t, "10.96.0.1:80/TCP", 1)) {
			t.Errorf("read as %+v", got)
		}
	}},
	{"local/same endpoint in another VRF", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, row(local(1), local(2)))
		other := local(1)
		other.VrfID = 7
		v.expect(t, noSuchEntry, delLocal(other))
		v.expect(t, ok, addLocal(other))
		if got := onlyRow(t, v).Locals[2]; got != other {
			t.Errorf("local %+v", got)
		}
	}},
	{"local/of a simple mapping", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, static())
		v.expect(t, invalidValue, addLocal(local(1)))
		v.expect(t, invalidValue, delLocal(local(1)))
	}},
	{"local/affinity row", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		msg := row(local(1), local(2))
		msg.Affinity = 60
		v.expect(t, ok, msg)
		v.expect(t, ok, addLocal(local(3)))
		v.expect(t, ok, delLocal(local(1)))
		v.expect(t, ok, noRow())
	}},
}
