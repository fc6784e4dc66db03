package forwarding

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func network(t *testing.T, text string) (n Network) {
	t.Helper()
	prefix, table, _ := strings.Cut(text, "=")
	var err error
	if n.Prefix, err = netip.ParsePrefix(prefix); err != nil {
		t.Fatal(err)
	}
	if _, err = fmt.Sscan(table, &n.Table); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTables: networks => networks that are needed, and the table of addresses.
func TestTables(t *testing.T) {
	tests := []struct{ name, networks, needed, of string }{
		{"ordinary world", "0.0.0.0/0=0 10.1.0.0/17=0 10.1.1.2/32=0", "", "10.1.1.2=0 8.8.8.8=0"},
		{"nothing", "", "", "10.1.1.2=0"},
		{"pods elsewhere", "10.1.1.2/32=2 0.0.0.0/0=0 10.1.0.0/17=2", "10.1.0.0/17=2", "10.1.1.2=2 10.1.128.1=0"},
		{"uplink elsewhere", "0.0.0.0/0=5 10.1.0.0/17=0 10.1.128.0/17=5", "0.0.0.0/0=5 10.1.0.0/17=0", "10.1.1.2=0 10.1.128.1=5 8.8.8.8=5"},
		{"one pod differs", "10.1.0.0/17=2 10.1.1.2/32=0 10.1.1.3/32=2", "10.1.0.0/17=2 10.1.1.2/32=0", "10.1.1.2=0 10.1.1.3=2"},
		{"of equal prefixes the first", "10.1.1.2/32=4 10.1.1.2/32=2", "10.1.1.2/32=4", "10.1.1.2=4"},
		{"also where the first is left out", "10.1.1.2/32=0 10.1.1.2/32=2", "", "10.1.1.2=0"},
		{"nested", "10.0.0.0/8=1 10.1.0.0/16=2 10.1.1.0/24=1", "10.0.0.0/8=1 10.1.0.0/16=2 10.1.1.0/24=1", "10.9.9.9=1 10.1.9.9=2 10.1.1.9=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var all []Network
			for _, text := range strings.Fields(tt.networks) {
				all = append(all, network(t, text))
			}
			tables := NewTables(all)
			var needed []string
			for _, n := range tables.Networks() {
				needed = append(needed, fmt.Sprintf("%s=%d", n.Prefix, n.Table))
			}
			if got := strings.Join(needed, " "); got != tt.needed {
				t.Errorf("needed %q, want %q", got, tt.needed)
			}
			for _, text := range strings.Fields(tt.of) {
				address, _, _ := strings.Cut(text, "=")
				if got := fmt.Sprintf("%s=%d", address, tables.Of(netip.MustParseAddr(address))); got != text {
					t.Errorf("%s, want %s", got, text)
				}
			}
			if !tables.Equal(NewTables(tables.Networks())) {
				t.Error("the needed networks say something else")
			}
		})
	}
}
