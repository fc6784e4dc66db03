package main

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
)

// prefixes parses networks.
func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// TestAddresses: a pod gets one address of each network; freed ones are used after all others.
func TestAddresses(t *testing.T) {
	s := store(t.TempDir())
	networks := prefixes("10.1.1.0/29", "fd00:1::/64")
	var got []string
	for _, step := range []string{"+a", "+b", "-a", "+c", "+c", "+d", "+e"} {
		link := step[1:]
		if step[0] == '-' {
			if err := s.remove(link); err != nil {
				t.Fatal(err)
			}
			continue
		}
		a, err := s.add(link, networks, nothingHeld)
		if errors.Is(err, errFull) {
			got = append(got, link+" full")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, link+" "+a.Addresses[0].String()+" "+a.Addresses[1].String())
	}
	// 10.1.1.1 and .2 are those of VPP and the host, .6 is Troupe's.
	want := []string{"a 10.1.1.3 fd00:1::3", "b 10.1.1.4 fd00:1::4", "c 10.1.1.5 fd00:1::5", "c 10.1.1.5 fd00:1::5", "d 10.1.1.3 fd00:1::3", "e full"}
	if !slices.Equal(got, want) {
		t.Errorf("addresses\n%q, want\n%q", got, want)
	}
	all, err := s.list()
	if err != nil || len(all) != 3 || all["b"].Addresses[1] != netip.MustParseAddr("fd00:1::4") {
		t.Errorf("kept: %v, %v", all, err)
	}
}

func TestPodsOf(t *testing.T) {
	for _, tc := range []struct {
		networks []netip.Prefix
		want     uint32
	}{
		{prefixes("10.1.1.0/24", "fd00:1::/64"), 251},
		{prefixes("fd00:1::/64"), 65536},
		{prefixes("10.1.0.0/16"), 65536},
		{prefixes("10.1.1.0/30"), 0},
	} {
		if got := podsOf(tc.networks); got != tc.want {
			t.Errorf("pods of %v = %d, want %d", tc.networks, got, tc.want)
		}
	}
}

// nothingHeld is a VPP without neighbours.
func nothingHeld() (map[netip.Addr]string, error) { return nil, nil }

// TestDamaged: an attachment that cannot be read stops no other pod. Its addresses, which VPP
// knows, are not given away, and nothing is while VPP does not answer.
func TestDamaged(t *testing.T) {
	for _, content := range []string{"", "{", "null", `{"link":"podx","addresses":["10.1.1.9"]}`} {
		s := store(t.TempDir())
		if err := os.WriteFile(s.file("poda"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := s.add("podb", prefixes("10.1.1.0/24"), func() (map[netip.Addr]string, error) { return nil, errors.New("no answer") }); err == nil {
			t.Errorf("%q: added %v", content, a)
		}
		a, err := s.add("podb", prefixes("10.1.1.0/24"), func() (map[netip.Addr]string, error) {
			return map[netip.Addr]string{netip.MustParseAddr("10.1.1.3"): "poda"}, nil
		})
		if err != nil || a.Addresses[0] != netip.MustParseAddr("10.1.1.4") {
			t.Errorf("%q: added %v, %v", content, a, err)
		}
		all, err := s.list()
		if err != nil || len(all) != 2 || !all["poda"].damaged() || all["podb"].damaged() {
			t.Errorf("%q: kept %v, %v", content, all, err)
		}
		if err := s.remove("poda"); err != nil {
			t.Error(err)
		}
		if a, err := s.add("podc", prefixes("10.1.1.0/24"), func() (map[netip.Addr]string, error) { return nil, errors.New("not needed") }); err != nil {
			t.Errorf("%q: added %v, %v", content, a, err)
		}
	}
}

// TestNames: the link of a pod has a name that the kernel takes, and a locally administered address
// of its own.
func TestNames(t *testing.T) {
	one, other := linkOf("0123456789abcdef", "eth0"), linkOf("0123456789abcdef", "eth1")
	if len(one) != 15 || one == other {
		t.Errorf("links %q and %q", one, other)
	}
	if m := macOf(one); m == macOf(other) || m[0] != 2 || m == vppMAC {
		t.Errorf("address %x", m)
	}
}
