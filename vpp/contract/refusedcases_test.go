package contract

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/af_packet"

	discovery "github.com/troupe-vpp/troupe/vpp/interfaces"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/routes"
)

// sessionLayer starts VPP again, with its session layer or without.
func (v *rig) sessionLayer(t testing.TB, on bool) {
	t.Helper()
	switch target := v.Target.(type) {
	case *simulated:
		target.vpp.SetSessionLayer(on)
	case real:
		target.Configure(map[bool]string{true: "session { enable }"}[on])
	}
	v.Crash(t)
	v.waitDown(t)
	v.Restart(t)
	v.waitUp(t)
}

// refusing is what is wanted of a VPP that refuses for certain prefixes.
func (a *refusals) refusing(kind routes.Kind) routes.Want {
	return routes.Want{serviceNet: {Kind: kind}, serviceNet6: {Kind: kind}, clusterIP: {Kind: kind}}
}

var refusedCases = []contractCase{
	{"refusal/VPP says whether it refuses packets to itself", func(t *testing.T, v *rig) {
		a := &refusals{rig: v}
		for _, on := range []bool{false, true, false} {
			v.sessionLayer(t, on)
			a.have = routes.NewState()
			a.read(t, nil)
			check(t, fmt.Sprintf("with the session layer %v, unable", on), map[bool]string{false: routes.NoSessionLayer}[on], a.have.Unable)
		}
	}},
	{"refusal/by the session layer: a route to VPP itself, and back", func(t *testing.T, v *rig) {
		v.sessionLayer(t, true)
		a := &refusals{rig: v}
		check(t, "operations", []string{"register-source", "add-route", "add-route", "add-route"}, a.settle(t, a.refusing(routes.Local)))
		leads(t, v, "10.96.0.1/32", "10.96.0.1/32", toLocal, none)
		leads(t, v, "10.96.0.2/32", "10.96.0.0/16", toLocal, none)
		check(t, "operations back", []string{"add-route", "add-route", "add-route"}, a.settle(t, a.refusing(routes.Reject)))
		leads(t, v, "10.96.0.1/32", "10.96.0.1/32", unreachable, none)
	}},
}

// intoTable are commands that put an interface into table 2 of IPv4 and of IPv6. Its default leads
// to table 0, which leads there by the network of the pod. VPP exempts routes between tables from
// its check of sources if they were made by the API.
const (
	intoTable = `ip table add 2
set interface ip table % 2
ip route add 10.1.0.0/24 via ip4-lookup-in-table 2
ip route add table 2 0.0.0.0/0 via ip4-lookup-in-table 0`
	intoTable6 = `ip6 table add 2
set interface ip6 table % 2
ip route add fd01::/64 via ip6-lookup-in-table 2
ip route add table 2 ::/0 via ip6-lookup-in-table 0`
)

// TestRealVPPRefuses: a client in the namespace of a pod sees the refusals of both families and
// protocols at once, where it is in table 0. Tables of IPv6 do not concern IPv4.
func TestRealVPPRefuses(t *testing.T) {
	binary, plugins, why := realvpp.Find()
	switch {
	case why != "":
		t.Skip(why)
	case os.Geteuid() != 0:
		t.Skip("network namespaces need root")
	}
	process := realvpp.Start(t, binary, plugins)
	v := newRig(t, real{process})
	name := fmt.Sprintf("tr%d", os.Getpid())
	host, peer := name+"h", name+"p"
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	run("netns", "add", name)
	t.Cleanup(func() { run("netns", "del", name) })
	run("link", "add", host, "type", "veth", "peer", "name", peer, "netns", name)
	run("link", "set", host, "up")
	for _, args := range []string{
		"link set lo up", "link set " + peer + " up", "addr add 10.1.0.2/24 dev " + peer, "addr add fd01::2/64 nodad dev " + peer,
		"route add default via 10.1.0.1", "-6 route add default via fd01::1",
	} {
		run(append([]string{"-n", name}, strings.Fields(args)...)...)
	}
	// attempt connects in the namespace and returns what the client is told.
	attempt := func(protocol, address string) string {
		script := fmt.Sprintf("exec 3<>/dev/%s/%s/5353 && echo x >&3 && read -t 3 <&3", protocol, address)
		out, _ := exec.CommandContext(t.Context(), "ip", "netns", "exec", name, "timeout", "5", "bash", "-c", script).CombinedOutput()
		switch {
		case strings.Contains(string(out), "Connection refused"):
			return "refused"
		case strings.Contains(string(out), "No route to host"), strings.Contains(string(out), "Network is unreachable"):
			return "unreachable"
		default:
			return strings.TrimSpace("silence " + string(out))
		}
	}
	for _, c := range []struct {
		layer    bool
		tables   string
		kind     routes.Kind
		tcp, udp string // of IPv4 and of IPv6, or of both
	}{
		{true, "", routes.Local, "refused", "refused"},
		{true, intoTable + "\n" + intoTable6, routes.Local, "silence", "silence"}, // which the agent never asks for
		{true, intoTable + "\n" + intoTable6, routes.Reject, "unreachable", "silence"},
		{true, intoTable6, routes.Local, "refused silence", "refused silence"}, // IPv4: what the agent asks for
		{true, intoTable6, routes.Reject, "unreachable", "silence"},
		{false, "", routes.Reject, "unreachable", "silence"},
	} {
		v.sessionLayer(t, c.layer)
		port := ask[*af_packet.AfPacketCreateV3Reply](t, v, &af_packet.AfPacketCreateV3{
			Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, HostIfName: host, UseRandomHwAddr: true, NumRxQueues: 1, NumTxQueues: 1, Flags: af_packet.AF_PACKET_API_FLAG_CKSUM_GSO,
		}).SwIfIndex
		if c.tables != "" {
			g := realvpp.NewGenerator(t, process)
			for _, command := range strings.Split(strings.ReplaceAll(c.tables, "%", "host-"+host), "\n") {
				g.Command(t, command)
			}
		}
		v.expect(t, ok, up(port))
		v.expect(t, ok, address(t, port, "10.1.0.1/24"))
		v.expect(t, ok, address(t, port, "fd01::1/64"))
		run("-n", name, "neigh", "flush", "all") // the interface has another address than before
		set, err := new(discovery.Reader).Discover(t.Context(), v.link, discovery.Input{Boot: v.boot})
		if err != nil || (set.GetUnanswered() != "") != strings.Contains(c.tables, intoTable) || (set.GetUnanswered6() != "") != (c.tables != "") {
			t.Errorf("tables %q: clients stay unanswered because %q, %q, %v", c.tables, set.GetUnanswered(), set.GetUnanswered6(), err)
		}
		// an address of VPP itself, with a node port that nothing serves
		if got, want := attempt("tcp", "10.1.0.1"), map[bool]string{true: "refused", false: "silence"}[c.layer]; got != want {
			t.Errorf("%+v: TCP to VPP: %s, want %s", c, got, want)
		}
		if got := attempt("udp", "10.1.0.1"); got != "refused" {
			t.Errorf("%+v: UDP to VPP: %s", c, got)
		}
		a := &refusals{rig: v}
		a.settle(t, a.refusing(c.kind))
		for _, to := range []string{clusterIP.Addr().String(), netip.MustParseAddr("10.96.7.7").String(), "fd96::7"} {
			for protocol, want := range map[string]string{"tcp": c.tcp, "udp": c.udp} {
				if ip4, ip6, differ := strings.Cut(want, " "); differ {
					want = map[bool]string{true: ip6, false: ip4}[strings.Contains(to, "fd96")]
				}
				if got := attempt(protocol, to); got != want {
					t.Errorf("%+v: %s to %s: %s", c, protocol, to, got)
				}
			}
		}
	}
}
