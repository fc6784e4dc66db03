package normalize

import (
	"net/netip"
	"testing"
)

// FuzzParseAddr: a text that the standard library accepts means the same here. The result is
// canonical, and parsing it again gives the same result.
func FuzzParseAddr(f *testing.F) {
	for _, text := range []string{"10.1.1.3", "010.001.01.003", "::ffff:10.1.1.3", "2001:db8::1", "fe80::1%eth0", "::1.2.3.004", "1.2.3.4.5", "0.0.0.00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr, err := ParseAddr(text)
		if std, stdErr := netip.ParseAddr(text); stdErr == nil && std.Zone() == "" && (err != nil || addr != std.Unmap()) {
			t.Fatalf("%q is %v, %v; for the standard library it is %v", text, addr, err, std)
		}
		if err != nil {
			return
		}
		if !addr.IsValid() || addr.Zone() != "" || addr.Is4In6() {
			t.Fatalf("%q is %v, which is not canonical", text, addr)
		}
		if again, err := ParseAddr(addr.String()); err != nil || again != addr {
			t.Fatalf("%q is %v, which is read as %v, %v", text, addr, again, err)
		}
	})
}

// FuzzParsePrefix: like FuzzParseAddr, for ranges. Their host bits are cleared.
func FuzzParsePrefix(f *testing.F) {
	for _, text := range []string{"10.1.1.3/24", " 010.0.0.0/08 ", "::ffff:10.0.0.0/104", "::ffff:10.0.0.0/95", "2001:db8::/32", "0.0.0.0/0", "::/129", "10.0.0.0/-1", "1/2/3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prefix, err := ParsePrefix(text)
		if std, stdErr := netip.ParsePrefix(text); stdErr == nil && !std.Addr().Is4In6() && (err != nil || prefix != std.Masked()) {
			t.Fatalf("%q is %v, %v; for the standard library it is %v", text, prefix, err, std)
		}
		if err != nil {
			return
		}
		if !prefix.IsValid() || prefix != prefix.Masked() || prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
			t.Fatalf("%q is %v, which is not canonical", text, prefix)
		}
		if again, err := ParsePrefix(prefix.String()); err != nil || again != prefix {
			t.Fatalf("%q is %v, which is read as %v, %v", text, prefix, again, err)
		}
	})
}
