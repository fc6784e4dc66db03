package acceptance_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// filePacket begins the name of the packets of the file.
const filePacket = "file: "

// checkPackets sends the packets of the file.
func (r *run) checkPackets(packets []kubetest.Packet, expect []kubetest.Row) []deviation {
	r.Helper()
	var found []deviation
	for _, p := range packets {
		if p.Level != "MUST" && p.Level != "nftables" {
			r.Errorf("%s: unknown level %q", r.step, p.Level)
		}
		src, to := netip.MustParseAddr(p.Src), r.target(p.Dst)
		if src.Is6() {
			r.tally.count("packets of the file that are IPv6: only their rows are looked at", 1)
			continue
		}
		r.tally.count("packets of the file", 1)
		found = append(found, r.probe(src, to, verdict{
			action: p.Action, endpoints: p.Endpoints, masquerade: p.Masquerade, exact: true, optional: p.Level == "nftables", from: r.from(src),
			probe: filePacket + strings.TrimSpace(p.Name+" "+p.Src+" > "+p.Dst),
		})...)
	}
	return found
}

// generate sends packets of every kind of client to every frontend.
func (r *run) generate(expect []kubetest.Row) []deviation {
	r.Helper()
	var found []deviation
	for _, row := range expect {
		to := r.target(row.Frontend)
		if to.at.Addr().Is6() {
			continue
		}
		for _, src := range r.clients(row) {
			if row.From != "any" && row.From != r.from(src) {
				continue
			}
			r.tally.count("generated packets", 1)
			found = append(found, r.probe(src, to, r.wanted(row, src))...)
		}
	}
	return found
}

// clients are the sources of packets to a frontend: a pod and a process of this node, a client
// elsewhere, the endpoints on this node, and a client inside and outside of each source range.
func (r *run) clients(row kubetest.Row) []netip.Addr {
	all := []netip.Addr{r.pod, r.remote}
	for _, text := range r.self.Addresses {
		if a := netip.MustParseAddr(text); a.Is4() && !a.IsLoopback() {
			all = append(all, a)
			break
		}
	}
	for _, text := range row.Endpoints {
		if a := netip.MustParseAddrPort(text).Addr(); r.places.pods[a] != "" {
			all = append(all, a)
		}
	}
	if row.AllowSources != nil {
		for _, text := range *row.AllowSources {
			network := netip.MustParsePrefix(text)
			first := network.Addr()
			if !network.IsSingleIP() {
				first = first.Next()
			}
			// The first address after the range is outside unless another range has it.
			for _, a := range []netip.Addr{first, after(network)} {
				if a.IsValid() && r.places.of(a) == uplink && r.class(a) == classRemote {
					all = append(all, a)
				}
			}
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// after is the first address behind a network.
func after(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		a[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(a).Next()
}

// wanted is what a row asks for a client.
func (r *run) wanted(row kubetest.Row, src netip.Addr) verdict {
	v := verdict{
		action: row.Action, endpoints: row.Endpoints, affinity: row.AffinitySeconds, from: r.from(src),
		probe: fmt.Sprintf("%s %s > %s", r.class(src), src, row.Frontend),
	}
	if row.AllowSources != nil {
		inside := func(text string) bool { return netip.MustParsePrefix(text).Contains(src) }
		if !slices.ContainsFunc(*row.AllowSources, inside) {
			return verdict{action: drop, from: v.from, probe: v.probe}
		}
	}
	v.masquerade = row.MasqueradeFrom != nil && slices.Contains(*row.MasqueradeFrom, r.class(src))
	return v
}

// flow is an exchange of UDP packets that is under way.
type flow struct {
	packet   simulator.Packet
	endpoint netip.AddrPort
}

// openFlows opens a flow to each endpoint of each UDP frontend, which the next step finds.
func (r *run) openFlows(expect []kubetest.Row) {
	for _, row := range expect {
		to := r.target(row.Frontend)
		if row.Action != forward || to.proto != simulator.ProtoUDP || to.at.Addr().Is6() || row.From == "local" || row.AllowSources != nil {
			continue
		}
		for range most(len(row.Endpoints)) {
			if s := r.send(r.remote, to); s.action == forward {
				r.flows[row.Frontend+" "+s.endpoint.String()] = flow{s.verdict.Packet, s.endpoint}
			}
		}
	}
}

// checkFlows looks at the flows that were opened before the step: whether they go on with their
// endpoint.
func (r *run) checkFlows(flows []kubetest.Flow) []deviation {
	r.Helper()
	var found []deviation
	for _, want := range flows {
		f, exists := r.flows[want.Dst+" "+want.Endpoint]
		if !exists {
			r.tally.count("UDP flows that cannot be in VPP: never translated, or to an endpoint that was not there", 1)
			continue
		}
		r.tally.count("UDP flows", 1)
		v := r.VPP.Send(f.packet)
		lives := v.Action == simulator.Delivered && v.Dst == f.endpoint && !v.NewSession
		if lives == want.Deleted {
			found = append(found, deviation{
				frontend: want.Dst, from: "any", aspect: aspectFlow, want: fmt.Sprintf("deleted: %t", want.Deleted),
				got: fmt.Sprintf("goes on: %t", lives), detail: v.String(),
			})
		}
	}
	return found
}

// portsOf says which service port each frontend belongs to.
func portsOf(statuses map[string]*messages.ServiceStatus) map[string]string {
	ports := map[string]string{}
	for key, status := range statuses {
		for _, f := range status.GetView().GetFrontends() {
			ports[service.FrontendText(f)] = fmt.Sprint(key, "/", f.GetPortName(), "/", f.GetProtocol())
		}
	}
	return ports
}

// checkAffinity checks the frontends with affinity. While the affinity lasts, and not longer, a
// client stays with its endpoint at all frontends of the service port.
func (r *run) checkAffinity(expect []kubetest.Row, ports map[string]string) []deviation {
	r.Helper()
	var found []deviation
	var clients []netip.Addr
	homes := map[string]map[netip.Addr]netip.AddrPort{}
	longest := uint32(0)
	for _, row := range expect {
		to := r.target(row.Frontend)
		if row.AffinitySeconds == 0 || row.Action != forward || row.From == "local" || to.at.Addr().Is6() {
			continue
		}
		r.tally.count("frontends with affinity", 1)
		longest = max(longest, row.AffinitySeconds)
		for range most(len(row.Endpoints)) - len(clients) {
			clients = append(clients, r.unused("198.51.100.20"))
		}
		homes[row.Frontend] = map[netip.Addr]netip.AddrPort{}
		found = append(found, r.stickiness(row, to, clients, homes[row.Frontend])...)
	}
	for a := range homes {
		for b := range homes {
			if a != b && ports[a] == ports[b] {
				if client, differs := difference(homes[a], homes[b]); differs {
					found = append(found, deviation{
						frontend: a, from: "remote", aspect: aspectShared, want: "one endpoint per client", got: "two", probe: "clients " + a,
						detail: fmt.Sprintf("%s is at %s here and at %s with %s", client, homes[a][client], homes[b][client], b),
					})
				}
			}
		}
	}
	if longest == 0 {
		return found
	}
	r.ahead.Add(int64(time.Duration(longest+1) * time.Second))
	for frontend, home := range homes {
		again := map[netip.Addr]netip.AddrPort{}
		for client := range home {
			again[client] = r.send(client, r.target(frontend)).endpoint
		}
		if _, differs := difference(home, again); !differs && len(endpointsIn(home)) > 1 {
			found = append(found, deviation{
				frontend: frontend, from: "remote", aspect: aspectOutlives, want: "clients choose again", got: "all stay", probe: "clients " + frontend,
			})
		}
	}
	return found
}

// stickiness connects every client several times and notes where it belongs.
func (r *run) stickiness(row kubetest.Row, to target, clients []netip.Addr, home map[netip.Addr]netip.AddrPort) []deviation {
	f := &findings{to: to, want: r.wanted(row, clients[0])}
	f.want.probe = "clients " + row.Frontend
	for _, client := range clients {
		for range 3 {
			s := r.send(client, to)
			if s.action != forward {
				continue // generate has found it
			}
			if first, known := home[client]; !known {
				home[client] = s.endpoint
				r.compare(client, f, s)
			} else if first != s.endpoint {
				f.add(aspectSticky, "one endpoint per client", "two", s.verdict.String())
			}
		}
	}
	got := endpointsIn(home)
	for _, e := range row.Endpoints {
		if !got[e] {
			f.add(aspectStarved, "clients at "+e, nothing, "")
		}
	}
	return f.found
}

func endpointsIn(home map[netip.Addr]netip.AddrPort) map[string]bool {
	all := map[string]bool{}
	for _, e := range home {
		all[e.String()] = true
	}
	return all
}

// difference finds a client that is at different endpoints.
func difference(a, b map[netip.Addr]netip.AddrPort) (netip.Addr, bool) {
	for client := range a {
		if a[client] != b[client] {
			return client, true
		}
	}
	return netip.Addr{}, false
}
