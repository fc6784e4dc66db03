package agent

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// aloneVPP is a VPP that outlives agents, with an uplink and a pod.
func aloneVPP(t *testing.T) *simulator.VPP {
	t.Helper()
	vpp := simulator.New(simulator.Options{})
	t.Cleanup(func() { _ = vpp.Close() })
	_, err := vpp.AddInterface("uplink0", []netip.Prefix{netip.MustParsePrefix("192.168.16.1/24")}, true)
	_, podErr := vpp.AddPod("pod5", netip.MustParseAddr("10.1.1.5"))
	err = errors.Join(err, podErr, vpp.DefaultRoute("uplink0", netip.MustParseAddr("192.168.16.254")), vpp.Listen(filepath.Join(shortDir(t), "vpp")))
	if err != nil {
		t.Fatal(err)
	}
	return vpp
}

// egressOf is the source of a packet that a pod sends out of the cluster.
func egressOf(vpp *simulator.VPP, port uint16) string {
	return vpp.Send(simulator.Packet{
		In: "pod5", Src: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.5"), port), Dst: netip.MustParseAddrPort("198.51.100.7:443"), Proto: simulator.ProtoTCP,
	}).Src.Addr().String()
}

// snatIn are the lines of the state of VPP that SNAT has brought.
func snatIn(vpp *simulator.VPP) (left string) {
	for line := range strings.Lines(vpp.State()) {
		if strings.Contains(line, "identity") || strings.Contains(line, " output") || strings.Contains(line, "192.168.16.1 pool") {
			left += line
		}
	}
	return left
}

// externalWarning is the warning about external configuration.
func externalWarning(a *Agent) string {
	ready := a.Backend().Readiness()
	at := slices.IndexFunc(ready.Parts, func(p api.Part) bool { return p.Name == "external" })
	if at < 0 {
		return "unknown"
	}
	return ready.Parts[at].Reason
}

// TestSNAT: SNAT is refused without an overlay, comes with one, costs a restarted agent no write,
// and is taken away by one that is not to have it any more.
func TestSNAT(t *testing.T) {
	vpp := aloneVPP(t)
	cfg := everything(t)
	cfg.DataDir, cfg.Etcd.Mode, cfg.SNAT.Enabled = shortDir(t), config.EtcdNone, true
	cfg.VPP.Mode, cfg.VPP.APISocket, cfg.Healing.RediscoverInterval = config.VPPSocket, vpp.Socket(), config.Duration(100e6)
	start := func(enabled bool) *Agent {
		again := *cfg
		again.SNAT.Enabled = enabled
		a, err := Start(&again, quiet())
		if err != nil {
			t.Fatal(err)
		}
		ready(t, a)
		return a
	}
	a := start(true)
	eventually(t, "a refusal", func() bool {
		return strings.HasPrefix(externalWarning(a), "snat: refused: packets to pods of other nodes")
	})
	listed, err := a.Backend().External(t.Context())
	if err != nil || len(listed.Layers) != 1 || !strings.Contains(listed.Layers[0].Error, "10.1.2.0/24 of shop-b") || len(listed.Items) != 0 {
		t.Errorf("listed is %+v, %v", listed, err)
	}
	if got := egressOf(vpp, 4000); got != "10.1.1.5" {
		t.Errorf("a pod leaves as %s", got)
	}
	_, err = vpp.AddInterface("vxlan_tunnel0", []netip.Prefix{netip.MustParsePrefix("10.200.0.1/24")}, true)
	route := simulator.Route{Prefix: netip.MustParsePrefix("10.1.0.0/16"), Interface: "vxlan_tunnel0", NextHop: netip.MustParseAddr("10.200.0.2")}
	if err = errors.Join(err, vpp.AddRoute(route)); err != nil {
		t.Fatal(err)
	}
	port := uint16(5000)
	leaves := func(as string) func() bool { return func() bool { port++; return egressOf(vpp, port) == as } }
	eventually(t, "SNAT", leaves("192.168.16.1"))
	eventually(t, "all five parts of SNAT", func() bool { return strings.Count(snatIn(vpp), "\n") == 5 })
	eventually(t, "no warning", func() bool { return externalWarning(a) == "" })
	quiescentVPP(t, a, vpp)
	stop(t, a)

	before := vpp.Counters().Mutating()
	b := start(true)
	eventually(t, "everything in sync", func() bool {
		listed, err := b.Backend().External(t.Context())
		return err == nil && listed.Complete && len(listed.Items) == 5 && !slices.ContainsFunc(listed.Items, func(e api.ExternalEntry) bool { return e.State != "in-sync" })
	})
	quiescentVPP(t, b, vpp)
	if n := vpp.Counters().Mutating() - before; n != 0 {
		t.Errorf("%d writes of a restarted agent", n)
	}
	stop(t, b)

	c := start(false)
	eventually(t, "no SNAT", leaves("10.1.1.5"))
	quiescentVPP(t, c, vpp)
	if left := snatIn(vpp); left != "" {
		t.Errorf("left is\n%s", left)
	}
	eventually(t, "nothing is kept", func() bool {
		kept, err := c.externalSources().Load(t.Context())
		return err == nil && len(kept) == 0
	})
	stop(t, c)
}
