package routes

import (
	"errors"
	"net/netip"
	"testing"
)

func TestDescribe(t *testing.T) {
	prefix := pfx("10.96.0.0/16")
	check(t, "texts", []string{
		"register FIB source troupe with priority 207",
		"register FIB source troupe-yield with priority 209",
		"add reject route 10.96.0.0/16",
		"add yielding drop route fd96::/108",
		"delete route 10.96.0.0/16 of source 26",
		"verb-0",
	}, describe([]Op{
		{Verb: Register, Rank: Firm},
		{Verb: Register, Rank: Yielding},
		{Verb: Add, Rank: Firm, Prefix: prefix, Kind: Reject},
		{Verb: Add, Rank: Yielding, Prefix: pfx("fd96::/108"), Kind: Drop},
		{Verb: Delete, Source: 26, Prefix: prefix},
		{},
	}))
	if got := (Op{Verb: Delete, Source: 26, Prefix: prefix}).String(); got != "delete route 10.96.0.0/16 of source 26" {
		t.Errorf("String is %q", got)
	}
}

func TestOpCheck(t *testing.T) {
	add := func(prefix netip.Prefix) Op { return Op{Verb: Add, Rank: Firm, Prefix: prefix, Kind: Reject} }
	for _, c := range []struct {
		name string
		op   Op
		safe bool
	}{
		{"register", Op{Verb: Register, Rank: Firm}, true},
		{"register what", Op{Verb: Register}, false},
		{"network", add(pfx("10.96.0.0/12")), true},
		{"address", add(pfx("10.96.0.1/32")), true},
		{"IPv6", add(pfx("fd96::/108")), true},
		{"every address", add(pfx("0.0.0.0/0")), false},
		{"every IPv6 address", add(pfx("::/0")), false},
		{"host bits", add(pfx("10.96.0.1/16")), false},
		{"no prefix", add(netip.Prefix{}), false},
		{"multicast", add(pfx("224.0.0.0/4")), false},
		{"link-local", add(pfx("fe80::/10")), false},
		{"own machine", add(pfx("127.0.0.0/8")), false},
		{"IPv4 in IPv6", add(netip.PrefixFrom(at("::ffff:10.96.0.1"), 128)), false},
		{"no kind", Op{Verb: Add, Rank: Firm, Prefix: pfx("10.96.0.0/16")}, false},
		{"no rank", Op{Verb: Add, Prefix: pfx("10.96.0.0/16"), Kind: Drop}, false},
		{"delete", Op{Verb: Delete, Source: 26, Prefix: pfx("10.96.0.0/16")}, true},
		{"delete whatever is ours", Op{Verb: Delete, Source: 26, Prefix: pfx("0.0.0.0/0")}, true},
		{"delete of the API", Op{Verb: Delete, Prefix: pfx("10.96.0.0/16")}, false},
		{"delete nothing", Op{Verb: Delete, Source: 26}, false},
	} {
		if err := c.op.Check(); (err == nil) != c.safe || err != nil && !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
