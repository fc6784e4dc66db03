package routes

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/troupe-vpp/troupe/vpp/link"
)

func TestDescribe(t *testing.T) {
	prefix := pfx("10.96.0.0/16")
	check(t, "texts", []string{
		"register FIB source troupe with priority 207",
		"add reject route 10.96.0.0/16",
		"add external drop route fd96::/108",
		"delete route 10.96.0.0/16 of source 26",
		"verb-0",
	}, describe([]Op{
		{Verb: Register},
		{Verb: Add, Prefix: prefix, Route: Route{Kind: Reject}},
		{Verb: Add, Prefix: pfx("fd96::/108"), Route: Route{Kind: Drop, External: true}},
		{Verb: Delete, Source: 26, Prefix: prefix},
		{},
	}))
	if got := (Op{Verb: Delete, Source: 26, Prefix: prefix}).String(); got != "delete route 10.96.0.0/16 of source 26" {
		t.Errorf("String is %q", got)
	}
}

func TestOpCheck(t *testing.T) {
	add := func(prefix netip.Prefix) Op { return Op{Verb: Add, Prefix: prefix, Route: Route{Kind: Reject}} }
	for _, c := range []struct {
		name string
		op   Op
		safe bool
	}{
		{"register", Op{Verb: Register}, true},
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
		{"no kind", Op{Verb: Add, Prefix: pfx("10.96.0.0/16")}, false},
		{"delete", Op{Verb: Delete, Source: 26, Prefix: pfx("10.96.0.0/16")}, true},
		{"delete whatever is ours", Op{Verb: Delete, Source: 26, Prefix: pfx("0.0.0.0/0")}, true},
		{"delete of the API", Op{Verb: Delete, Prefix: pfx("10.96.0.0/16")}, false},
		{"delete nothing", Op{Verb: Delete, Source: 26}, false},
	} {
		if err := c.op.Check(); (err == nil) != c.safe || err != nil && !errors.Is(err, link.ErrUnsafe) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
