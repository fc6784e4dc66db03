package interfaces

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/binapi/ip"

	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/stats"
)

// Choice is how IPv4 is to be served in a VPP.
type Choice struct {
	// CNAT says that CNAT serves IPv4, otherwise NAT44.
	CNAT bool
	// Why is the reason, one line.
	Why string
}

// perPod is the beginning of the name of a table that Calico-VPP makes before the first pod.
const perPod = "calico-pods-"

// Choose reads how VPP is laid out. It changes nothing.
//
// NAT44 looks up a translated packet in the table of the endpoint, and knows its answer by that
// table. So it cannot serve a pod whose own address VPP has in the table of the pod's interface:
// there VPP receives the packet itself. Such an interface has, or borrows, the address that the
// main table leads to it. CNAT serves these pods. Everywhere else NAT44 does better (weights,
// affinity, source ranges), so that it serves a VPP without pods too, unless the tables of a CNI
// are there that gives each pod a table.
func Choose(ctx context.Context, c link.Caller) (Choice, error) {
	raw, err := readList(ctx, c)
	if err != nil {
		return Choice{}, fmt.Errorf("choose the renderer of IPv4: %w", err)
	}
	err = readAddresses(ctx, c, addressable(raw.Interfaces))
	if err == nil {
		err = readRoutes(ctx, c, &raw, raw.addresses4(), nil)
	}
	if err != nil {
		return Choice{}, fmt.Errorf("choose the renderer of IPv4: %w", err)
	}
	for k := range raw.Interfaces {
		if own := raw.ownAddress(&raw.Interfaces[k]); own.IsValid() {
			const text = "the table of %s has %s, the address behind it, as an address of VPP itself (a table for each pod)"
			return Choice{true, fmt.Sprintf(text, raw.Interfaces[k].Name, own)}, nil
		}
	}
	choice := Choice{Why: "VPP itself has the address of no pod"}
	err = optional(link.Each(ctx, c, &ip.IPTableDump{}, func(d *ip.IPTableDetails) {
		name := strings.TrimRight(d.Table.Name, "\x00")
		if m := d.Table; !m.IsIP6 && strings.HasPrefix(name, perPod) {
			choice = Choice{true, fmt.Sprintf("table %d is %s: Calico-VPP gives each pod a table", m.TableID, name)}
		}
	}))
	if err != nil {
		return Choice{}, fmt.Errorf("choose the renderer of IPv4: %w", err)
	}
	return choice, nil
}

// addresses4 are the IPv4 addresses of all interfaces.
func (r *Raw) addresses4() (all []netip.Addr) {
	for k := range r.Interfaces {
		for _, p := range r.Interfaces[k].Addresses {
			if p.Addr().Is4() && !slices.Contains(all, p.Addr()) {
				all = append(all, p.Addr())
			}
		}
	}
	return all
}

// ownAddress is the IPv4 address that an interface has, or borrows, and that is behind it as well;
// invalid = there is none. It can only be in another table than the main one.
func (r *Raw) ownAddress(i *RawInterface) netip.Addr {
	addresses := i.Addresses
	if i.Unnumbered {
		for k := range r.Interfaces {
			if lender := &r.Interfaces[k]; lender.Index == i.Lender {
				addresses = slices.Concat(addresses, lender.Addresses)
			}
		}
	}
	for _, p := range addresses {
		if t := r.Targets[p.Addr()]; p.Addr().Is4() && t.leads() && slices.Contains(t.Interfaces, i.Index) {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

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
