package routes

import (
	"net/netip"
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"reject": Reject.String(), "drop": Drop.String(), "other": Kind(0).String(), "external reject": externalReject.String(), "register-source": Register.String(),
		"add-route": Add.String(), "delete-route": Delete.String(), "verb-9": Verb(9).String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(t, "a route", "drop", plainDrop.String())
}

func TestUsable(t *testing.T) {
	for text, want := range map[string]bool{
		"10.96.0.1": true, "203.0.113.1": true, "fd96::1": true, "0.0.0.0": false, "::": false, "127.0.0.1": false, "::1": false,
		"224.0.0.1": false, "ff02::1": false, "169.254.1.1": false, "fe80::1": false, "::ffff:10.96.0.1": false, "fd96::1%eth0": false,
	} {
		if got := usable(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if usable(netip.Addr{}) {
		t.Error("no address is usable")
	}
}

func TestPrefixOrder(t *testing.T) {
	all := []netip.Prefix{pfx("fd96::/108"), pfx("10.96.0.1/32"), pfx("10.96.0.0/16"), pfx("10.96.0.0/12"), pfx("9.0.0.0/8")}
	slices.SortFunc(all, netip.Prefix.Compare)
	check(t, "order", []string{"9.0.0.0/8", "10.96.0.0/12", "10.96.0.0/16", "10.96.0.1/32", "fd96::/108"}, prefixes(all))
}
