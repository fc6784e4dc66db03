package catalog

import (
	"net/netip"
	"testing"
)

// TestA13Addresses: an address that must not be an endpoint is refused with its reason, also inside
// an IPv6 address.
func TestA13Addresses(t *testing.T) {
	p := Policy{
		ServiceRanges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00:96::/112")},
		Nodes:         []netip.Addr{netip.MustParseAddr("192.0.2.1")},
		Pods:          []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")},
		Deny:          []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("64:ff9b::c633:6463/128")},
	}
	var problems []Problem
	for _, c := range []struct {
		address, node string
		want          string // an address or a reason
	}{
		{"198.51.100.7", "", "198.51.100.7"},
		{"", "198.51.100.8", "198.51.100.8"},
		{"198.51.100.7", "198.51.100.8", "198.51.100.7"},
		{"2001:DB8::0:1", "", "2001:db8::1"},
		{"::ffff:198.51.100.7", "", "198.51.100.7"},
		{"", "", "no-address"},
		{"db.example.com", "198.51.100.8", "no-address"},
		{"198.51.100.007", "", "no-address"},
		{"fe80::1%eth0", "", "no-address"},
		{"2001:db8::1%eth0", "", "no-address"},
		{"0.0.0.0", "", "unspecified"},
		{"0.1.2.3", "", "unspecified"},
		{"::", "", "unspecified"},
		{"127.0.0.1", "", "loopback"},
		{"::ffff:127.0.0.1", "", "loopback"},
		{"::1", "", "loopback"},
		{"", "127.8.8.8", "loopback"},
		{"169.254.169.254", "", "link-local"},
		{"::ffff:169.254.169.254", "", "link-local"},
		{"fe80::1", "", "link-local"},
		{"224.0.0.251", "", "multicast"},
		{"ff02::1", "", "multicast"},
		{"255.255.255.255", "", "multicast"},
		{"10.96.0.10", "", "service-range"},
		{"::ffff:10.96.0.10", "", "service-range"},
		{"fd00:96::a", "", "service-range"},
		{"192.0.2.1", "", "node"},
		{"10.244.3.7", "", "pod"},
		{"::ffff:10.244.3.7", "", "pod"},
		{"fd00:244::7", "", "pod"},
		{"64:ff9b::10.244.3.7", "", "pod"},
		{"fd00:ec2::254", "", "metadata"},
		{"fd00:ec2::23", "", "metadata"},
		{"fd20:ce::254", "", "metadata"},
		{"168.63.129.16", "", "metadata"},
		{"64:ff9b::6464:64c8", "", "metadata"},
		{"10.1.2.3", "", "denied"},
		{"64:ff9b::198.51.100.99", "", "denied"},
		{"64:ff9b::198.51.100.98", "", "64:ff9b::c633:6462"},
		{"64:ff9b::a9fe:a9fe", "", "link-local"},
		{"64:ff9b::7f00:1", "", "loopback"},
		{"64:ff9b:1::a9fe:a9fe", "", "link-local"},
		{"64:ff9b:1:a9fe:a9:fe00::", "", "link-local"},
		{"64:ff9b:1:aa:a9:fea9:fe00:0", "", "link-local"},
		{"64:ff9b:1:aaa9:fe:a9fe::", "", "link-local"},
		{"64:ff9b:1::c633:6462", "", "64:ff9b:1::c633:6462"},
		{"64:ff9b:1:c633:64:6200::", "", "64:ff9b:1:c633:64:6200::"},
		{"2002:7f00:1::", "", "loopback"},
		{"2002:0a60:a::1", "", "service-range"},
		{"2002:c633:6462::1", "", "2002:c633:6462::1"},
		{"::7f00:1", "", "loopback"},
		{"::192.0.2.1", "", "node"},
		{"::2", "", "unspecified"},
		{"::ffff:0:7f00:1", "", "loopback"},
		{"::ffff:0:198.51.100.98", "", "::ffff:0:c633:6462"},
		{"2001:0:c633:6462::80ff:fffe", "", "loopback"},
		{"2001:0:a9fe:a9fe::39cc:9b9d", "", "link-local"},
		{"2001:0:c633:6462::39cc:9b9d", "", "2001:0:c633:6462::39cc:9b9d"},
	} {
		address, problem := p.Address(Instance{Address: c.address, NodeAddress: c.node})
		got := address.String()
		if problem != nil {
			got = string(problem.Reason)
			problems = append(problems, *problem)
		}
		if got != c.want {
			t.Errorf("%q on %q: %s, want %s", c.address, c.node, got, c.want)
		}
	}
	if n := Count(problems); n[ReasonLoopback] != 9 || n[ReasonNoAddress] != 5 || n[ReasonNode] != 2 {
		t.Errorf("counts %v", n)
	}
}
