package acceptance_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

var worlds = flag.Uint64("worlds", 10, "random clusters of TestNothingIsApproximatedSilently, for each kind of VPP; CI makes 40")

// TestNothingIsApproximatedSilently sends packets of every kind of client to every frontend of
// random clusters. Rows, access lists and routes must treat them as the frontends of the views say.
// Otherwise the service that owns the frontend must have an approximation.
func TestNothingIsApproximatedSilently(t *testing.T) {
	counts := newTally()
	t.Run("world", func(t *testing.T) {
		for seed := range *worlds {
			for i, owns := range []owner{vppOwns, hostOwns, bareVPP, cnatServes} {
				t.Run(fmt.Sprintf("%d, %s", seed, owns), func(t *testing.T) {
					t.Parallel()
					randomWorld(t, rand.New(rand.NewPCG(seed, uint64(i))), owns, counts).checkSilence()
				})
			}
		}
	})
	counts.print(t, "random clusters")
}

// randomWorld makes a random cluster and waits until it is served.
func randomWorld(t *testing.T, random *rand.Rand, owns owner, counts *tally) *run {
	t.Helper()
	serving := service.Config{ServiceCIDRs: prefixes(t, []string{"10.96.0.0/16"}), MasqueradeAll: random.IntN(6) == 0}
	if random.IntN(4) > 0 {
		serving.ClusterCIDRs = prefixes(t, []string{"10.1.0.0/16"})
	}
	r := newClusterRun(t, serving, owns, counts)
	r.Source.Change(func(s *kube.Store) {
		for range changes {
			randomChange(random)(s)
		}
	})
	r.separateRanges()
	r.Start()
	r.settled()
	return r
}

// separateRanges gives every service with source ranges a load-balancer address of its own, and
// takes the ranges away where nothing enforces them.
func (r *run) separateRanges() {
	inputs := r.Source.Services()
	r.Source.Change(func(s *kube.Store) {
		for _, in := range inputs {
			one := proto.CloneOf(in.GetService())
			if len(one.GetSourceRanges()) == 0 {
				continue
			}
			one.LoadBalancer[0].Ip = "203.0.113.1" + one.GetName()[1:]
			if r.owns == bareVPP || r.owns == cnatServes {
				one.SourceRanges = nil
			}
			s.Set(one, nil)
		}
	})
}

// newClusterRun is a node as of newCluster, for packets.
func newClusterRun(t *testing.T, serving service.Config, owns owner, counts *tally) *run {
	t.Helper()
	var without []string
	if owns == bareVPP {
		without = []string{"acl"}
	}
	r := &run{
		node: newNode(t, nodeName, serving, without...), file: &kubetest.Case{Name: t.Name()}, owns: owns, tally: counts, step: "random",
		vips: map[netip.Addr]bool{},
	}
	r.cnat = owns == cnatServes
	r.build(owns, []string{nodeAddress})
	r.zone("a")
	for i := range localPods {
		r.client(localPod(i))
	}
	return r
}

// checkSilence judges the packets of all kinds of clients to all frontends.
func (r *run) checkSilence() {
	r.Helper()
	statuses := r.Statuses()
	var views []*messages.ServiceView
	for _, status := range statuses {
		views = append(views, status.GetView())
	}
	reports := r.reports(statuses)
	table := service.NewTable(views, r.context, r.Serving)
	for to := range frontendsOf(r, views) {
		for _, src := range someClients {
			want, service := r.askTable(table, src, to)
			r.tally.count("kinds of packets", 1)
			said := func(d deviation) bool {
				return r.cnat && alikeByCNAT(d, r.places.nodes[src]) ||
					slices.ContainsFunc(reports, func(one *report) bool { return one.service == service && one.allows(d) })
			}
			r.expectSaid(service, r.probe(src, to, want), said)
		}
	}
	r.checkOtherPorts(table, reports)
}

// alikeByCNAT reports whether docs/semantics.md names a difference for all services of CNAT. CNAT
// replaces the source of clients outside before endpoints on other nodes. It does not translate
// answers to an address of VPP itself. A cluster IP with a row has no other ports.
func alikeByCNAT(d deviation, ofNode bool) bool {
	return d.aspect == aspectMasquerade && d.got == "source replaced" || d.aspect == aspectAnswer && ofNode || d.aspect == aspectAction && d.want != forward && d.got == drop
}

// expectSaid fails the test for differences that are not said.
func (r *run) expectSaid(service string, found []deviation, said func(deviation) bool) {
	r.Helper()
	for _, d := range found {
		if said(d) {
			r.tally.count("differences that an approximation names", 1)
			continue
		}
		r.tally.unreported(r, d)
		r.Errorf("%s does not say: %s", service, d)
	}
}

// checkOtherPorts judges packets to a port that no service has. At an address outside of the
// service networks nothing happens to them, unless a service reports that the whole address is
// refused.
func (r *run) checkOtherPorts(table *service.Table, reports []*report) {
	r.Helper()
	for vip := range r.vips {
		if r.inServiceNetwork(vip.String()) {
			continue
		}
		refused := slices.ContainsFunc(reports, func(one *report) bool {
			return hostOf(one.frontend) == vip.String() && strings.Contains(one.reason, "on every port of the address")
		})
		for _, proto := range []uint8{simulator.ProtoTCP, simulator.ProtoUDP} {
			at := netip.AddrPortFrom(vip, 9)
			to := target{frontendText(vip, 9, proto), at, proto}
			for _, src := range someClients {
				r.tally.count("kinds of packets to other ports", 1)
				want, _ := r.askTable(table, src, to)
				r.expectSaid("no service", r.probe(src, to, want), func(d deviation) bool {
					return refused && d.got == unreachable
				})
			}
		}
	}
}

// someClients are pods and processes of this node, endpoints or not, pods of another node, and
// clients outside, in source ranges or not.
var someClients = []netip.Addr{
	localPod(localPods - 1), localPod(0), localPod(1), netip.MustParseAddr(nodeAddress), remotePod(20), remotePod(0),
	netip.MustParseAddr("198.51.100.10"), netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("100.64.0.10"),
}

// frontendsOf are all frontends of the views, and notes their addresses.
func frontendsOf(r *run, views []*messages.ServiceView) map[target]bool {
	all := map[target]bool{}
	for _, view := range views {
		for _, f := range view.GetFrontends() {
			to := r.target(service.FrontendText(f))
			all[to] = true
			r.vips[to.at.Addr()] = !r.places.nodes[to.at.Addr()]
		}
	}
	return all
}

// askTable is what the frontends say of the packets of a client, and the service that they belong
// to.
func (r *run) askTable(table *service.Table, src netip.Addr, to target) (verdict, string) {
	asked := table.Verdict(service.Packet{Source: src, Destination: to.at, Protocol: messages.Protocol(to.proto)})
	want := verdict{
		action: asked.Word(), masquerade: asked.Masquerade, from: r.from(src), probe: fmt.Sprintf("%s %s > %s", r.class(src), src, to.frontend),
	}
	for _, b := range asked.Backends {
		want.endpoints = append(want.endpoints, service.BackendText(b))
	}
	if asked.Row != nil {
		want.affinity = asked.Row.GetAffinitySeconds()
	}
	return want, asked.Owner
}
