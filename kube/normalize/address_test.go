package normalize_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/kube/normalize"
)

func TestParseAddr(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"10.0.0.1", "10.0.0.1"},
		{"010.000.00.0001", "10.0.0.1"},
		{"0.0.0.0", "0.0.0.0"},
		{"::ffff:10.0.0.1", "10.0.0.1"},
		{"::ffff:010.0.0.01", "10.0.0.1"},
		{"::ffff:a00:1", "10.0.0.1"},
		{"FD00:0:0:0::1", "fd00::1"},
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
		{"", ""},
		{" 10.0.0.1", ""},
		{"10.0.0", ""},
		{"10.0.0.1.1", ""},
		{"10.0..1", ""},
		{"10.0.0.256", ""},
		{"10.0.0.+1", ""},
		{"10.0.0.0x1", ""},
		{"fe80::1%eth0", ""},
		{"::ffff:10.0.0.1%eth0", ""},
		{"10.0.0.1/32", ""},
		{"web.example.com", ""},
	} {
		got, err := normalize.ParseAddr(c.in)
		if err != nil != (c.want == "") || err == nil && got.String() != c.want {
			t.Errorf("ParseAddr(%q) = %v, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestParsePrefix(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"10.1.2.3/8", "10.0.0.0/8"},
		{"  192.168.0.0/16\t", "192.168.0.0/16"},
		{"010.0.0.0/08", "10.0.0.0/8"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"::/0", "::/0"},
		{"fd00::1/64", "fd00::/64"},
		{"::ffff:10.0.0.0/104", "10.0.0.0/8"},
		{"::ffff:10.0.0.0/95", ""},
		{"10.0.0.0/33", ""},
		{"10.0.0.0/-1", ""},
		{"10.0.0.0/", ""},
		{"10.0.0.0", ""},
		{"10.0.0.0 /8", ""},
		{"/8", ""},
		{"", ""},
	} {
		got, err := normalize.ParsePrefix(c.in)
		if err != nil != (c.want == "") || err == nil && got.String() != c.want {
			t.Errorf("ParsePrefix(%q) = %v, %v; want %q", c.in, got, err, c.want)
		}
	}
}

// TestParseAddrAgreesWithTheStandardLibrary compares with net.ParseIP, from which ParseIPSloppy was
// forked. A text that net.ParseIP accepts means the same here, and leading zeros change nothing.
func TestParseAddrAgreesWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.SampledFrom([]int{4, 16}).Draw(t, "length")
		raw := rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "bytes")
		if length == 16 && rapid.Bool().Draw(t, "mapped") {
			copy(raw, net.IPv4zero[:12])
		}
		text := net.IP(raw).String()
		got, err := normalize.ParseAddr(text)
		if err != nil || got.String() != text {
			t.Fatalf("ParseAddr(%q) = %v, %v", text, got, err)
		}
		if !got.Is4() {
			return
		}
		octets := strings.Split(text, ".")
		for i := range octets {
			octets[i] = strings.Repeat("0", rapid.IntRange(0, 4).Draw(t, "zeros")) + octets[i]
		}
		if padded, err := normalize.ParseAddr(strings.Join(octets, ".")); err != nil || padded != got {
			t.Fatalf("ParseAddr(%q) = %v, %v; want %v", strings.Join(octets, "."), padded, err, got)
		}
	})
}

// TestParsingIsIdempotent: for any input, parsing the canonical text gives the same text.
func TestParsingIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9a-f:.]{0,40}(/[0-9]{0,3})?`)).Draw(t, "text")
		if addr, err := normalize.ParseAddr(text); err == nil {
			if again, err := netip.ParseAddr(addr.String()); err != nil || again != addr {
				t.Fatalf("%q -> %v -> %v, %v", text, addr, again, err)
			}
		}
		if prefix, err := normalize.ParsePrefix(text); err == nil {
			if again, err := netip.ParsePrefix(prefix.String()); err != nil || again != prefix || again != again.Masked() {
				t.Fatalf("%q -> %v -> %v, %v", text, prefix, again, err)
			}
		}
	})
}
