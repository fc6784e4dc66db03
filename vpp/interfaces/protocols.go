package interfaces

import (
	"slices"
	"strings"

	"go.fd.io/govpp/adapter"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// otherProtocols returns why packets that are not TCP, UDP or ICMP enter through an interface; "" =
// nothing says so.
func (d *deriver) otherProtocols(i *RawInterface, one *messages.Interface, in *Input) string {
	switch {
	case !one.GetFrontend():
		return ""
	case in.OtherProtocols[i.Index]:
		return "VPP has received such packets"
	case one.GetKind() == messages.InterfaceKind_INTERFACE_UPLINK || !one.GetLocal() && !isTunnel(i.Device) && !i.BVI:
		return d.carried()
	}
	for _, p := range in.Pods {
		if name := p.GetNamespace() + "/" + p.GetName(); p.GetOtherProtocols() && slices.Contains(d.pods[i.Index], name) {
			return "pod " + name + " says so"
		}
	}
	return ""
}

// carried names a tunnel whose packets are neither TCP nor UDP. They enter through any interface
// that leads to other machines.
func (d *deriver) carried() string {
	for k := range d.raw.Interfaces {
		i := &d.raw.Interfaces[k]
		for _, word := range []string{"gre", "ipip", "ipsec", "6rd"} {
			if i.AdminUp && strings.Contains(strings.ToLower(i.Device), word) {
				return "the packets of tunnel " + i.Name
			}
		}
	}
	return ""
}

// NewOtherProtocols returns a reader of the interfaces through which VPP has received packets that
// are not TCP, UDP or ICMP since it started, from the statistics socket at path. NAT44 counts them
// where an interface has a role.
func NewOtherProtocols(path string) *stats.Reader[map[uint32]bool] {
	return stats.NewReader(path, "^/nat44-ed/(in2out|out2in)/(fast|slow)path/other$", func(found []adapter.StatEntry) (map[uint32]bool, error) {
		seen := map[uint32]bool{}
		for _, e := range found {
			threads, _ := e.Data.(adapter.SimpleCounterStat)
			for _, counters := range threads {
				for index, n := range counters {
					if n > 0 {
						seen[uint32(index)] = true
					}
				}
			}
		}
		return seen, nil
	})
}
