package hostroute

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHost plays the keeper on the kernel, in a network namespace of its own: this test again, in
// another process.
func TestHost(t *testing.T) {
	if os.Getenv("TROUPE_HOSTROUTE_NAMESPACE") != "" {
		hostStory(t)
		return
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the kernel's routes are not tested: no ip command (iproute2)")
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestHost$", "-test.v")
	again.Env = append(os.Environ(), "TROUPE_HOSTROUTE_NAMESPACE=1")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := again.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("the kernel's routes are not tested: no right to make a network namespace")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// ip runs the command of iproute2.
func ip(t *testing.T, arguments string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(arguments)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", arguments, err, out)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

func hostStory(t *testing.T) {
	ip(t, "link set lo up")
	ip(t, "link add vpp0 type veth peer name vpp1")
	ip(t, "link set vpp1 up")
	ip(t, "addr add 172.30.0.2/24 dev vpp0")
	k := New(Config{Interface: "vpp0", Gateway: vppEnd}, Host(vppEnd), slog.New(slog.DiscardHandler))
	k.Route([]netip.Prefix{services})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	const ours = "10.96.0.0/12 via 172.30.0.1 dev vpp0 proto 84"
	wait := func(step, routes, problem string) {
		t.Helper()
		var have string
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			have = ip(t, "route show root 10.96.0.0/12")
			if have == routes && strings.Contains(k.Status().Problem, problem) && (problem == "") == (k.Status().Problem == "") {
				return
			}
		}
		t.Fatalf("%s: the kernel has %q, status %+v; want %q and problem %q", step, have, k.Status(), routes, problem)
	}
	wait("interface down", "", "is down")
	ip(t, "link set vpp0 up")
	wait("interface up", ours, "")
	ip(t, "route del 10.96.0.0/12")
	wait("route removed", ours, "")
	ip(t, "route add 10.96.0.0/12 via 172.30.0.9 metric 50 proto 186")
	wait("route of another owner", "10.96.0.0/12 via 172.30.0.9 dev vpp0 proto bgp metric 50", "of another owner (protocol 186)")
	ip(t, "route del 10.96.0.0/12 metric 50")
	wait("the other one gone", ours, "")
	ip(t, "link set vpp0 down")
	wait("interface down again", "", "is down")
	ip(t, "link set vpp0 up")
	wait("interface up again", ours, "")
	ip(t, "link del vpp0")
	wait("no interface", "", "no such network interface")
	ip(t, "link add vpp0 type veth peer name vpp1")
	ip(t, "link set vpp1 up")
	ip(t, "link set vpp0 up")
	ip(t, "addr add 172.30.0.2/24 dev vpp0")
	wait("interface made again, with another index", ours, "")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if have := ip(t, "route show root 10.96.0.0/12"); have != ours {
		t.Errorf("after the end the kernel has %q, want %q", have, ours)
	}
	if err := k.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if have := ip(t, "route show root 10.96.0.0/12"); have != "" {
		t.Errorf("after the clean-up the kernel has %q", have)
	}
	sourceStory(t)
	nodePortStory(t)
}

// sourceStory is the part about addresses of the node, in both families: the kernel takes them as
// source, and the same routes again change nothing.
func sourceStory(t *testing.T) {
	ip(t, "addr add 192.168.0.2/32 dev lo")
	ip(t, "addr add fd01::2/128 dev lo nodad")
	for _, family := range []struct{ gateway, network, want string }{
		{"172.30.0.1", "10.96.0.0/12", "10.96.0.0/12 via 172.30.0.1 dev vpp0 proto 84 src 192.168.0.2"},
		{"fe80::1", "fd00:96::/112", "fd00:96::/112 via fe80::1 dev vpp0 proto 84 src fd01::2 metric 1024 pref medium"},
	} {
		gateway := netip.MustParseAddr(family.gateway)
		k := New(Config{Interface: "vpp0", Gateway: gateway, NodeSource: true}, Host(gateway), slog.New(slog.DiscardHandler))
		k.Node([]string{"192.168.0.1", "192.168.0.2", "fd01::2"}, nil)
		networks := []netip.Prefix{netip.MustParsePrefix(family.network)}
		if s := k.reconcile(networks); s != (Status{Kept: 1}) {
			t.Errorf("status %+v", s)
		}
		show := map[bool]string{true: "-4", false: "-6"}[gateway.Is4()] + " route show root " + family.network
		if have := ip(t, show); have != family.want {
			t.Errorf("the kernel has %q, want %q", have, family.want)
		}
		link, err := k.kernel.Link("vpp0")
		have, err2 := k.kernel.Routes()
		like := Route{Gateway: gateway, Link: link, Source: netip.MustParseAddr(strings.Fields(family.want)[8])}
		if c := Plan(networks, like, have); err != nil || err2 != nil || len(c.Add)+len(c.Remove)+len(c.Foreign) > 0 {
			t.Errorf("a second look changes %+v, %v, %v", c, err, err2)
		}
		if err := k.Remove(t.Context()); err != nil || ip(t, show) != "" {
			t.Errorf("after the clean-up %v, %q", err, ip(t, show))
		}
	}
}

// nodePortStory: packets to node ports at the node's own addresses lead to VPP, other packets to
// these addresses do not; a second look changes nothing, and the end undoes everything.
func nodePortStory(t *testing.T) {
	before := [2]string{ip(t, "-4 rule show"), ip(t, "-6 rule show")}
	for i, family := range []struct{ option, gateway, node, own string }{
		{"-4", "172.30.0.1", "192.168.0.2", "192.168.0.2 dev lo"}, {"-6", "fe80::1", "fd01::2", "fd01::2 from :: dev lo"},
	} {
		gateway := netip.MustParseAddr(family.gateway)
		k := New(Config{Interface: "vpp0", Gateway: gateway, NodePorts: Ports{30000, 32767}}, Host(gateway), slog.New(slog.DiscardHandler))
		k.Node(nil, []string{"192.168.0.1", "192.168.0.2", "fd01::2", "fd01::3"})
		rules := ""
		for range 3 {
			if s := k.reconcile(nil); s != (Status{}) {
				t.Errorf("status %+v", s)
			}
			if have := ip(t, family.option+" rule show"); rules != "" && have != rules {
				t.Errorf("another look makes\n%s of\n%s", have, rules)
			} else {
				rules = have
			}
		}
		if strings.Count(rules, "lookup local") != 1 {
			t.Errorf("rules: %s", rules)
		}
		for _, c := range []struct {
			packet string
			vpp    bool
		}{
			{"ipproto tcp dport 30000", true}, {"ipproto udp dport 32767", true}, {"ipproto tcp dport 29999", false}, {"ipproto udp dport 32768", false}, {"", false},
		} {
			way := ip(t, family.option+" route get "+family.node+" "+c.packet)
			if strings.Contains(way, "via "+family.gateway+" dev vpp0 table 84") != c.vpp || strings.Contains(way, family.own) == c.vpp {
				t.Errorf("%s to %s takes %s", c.packet, family.node, way)
			}
		}
		accepts := func() string {
			text, err := os.ReadFile("/proc/sys/net/ipv4/conf/vpp0/accept_local")
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(text))
		}
		if want := [2]string{"1", "0"}[i]; accepts() != want {
			t.Errorf("accept_local is %s, want %s", accepts(), want)
		}
		if err := k.Remove(t.Context()); err != nil || ip(t, family.option+" rule show") != before[i] || accepts() != "0" {
			t.Errorf("after the clean-up %v, %s, accept_local %s", err, ip(t, family.option+" rule show"), accepts())
		}
		if out, _ := exec.CommandContext(t.Context(), "ip", family.option, "route", "show", "table", "84").CombinedOutput(); strings.Contains(string(out), "via") {
			t.Errorf("after the clean-up table 84 has %s", out)
		}
	}
}
