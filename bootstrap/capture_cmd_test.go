package bootstrap

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/vpp/realvpp"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// TestCaptureOnARealVPP: a packet of a service is shown node by node, with what the agent expects.
func TestCaptureOnARealVPP(t *testing.T) {
	binary, plugins, why := realvpp.Find()
	if why != "" {
		t.Skip(why)
	}
	p := realvpp.Start(t, binary, plugins)
	g := realvpp.NewGenerator(t, p)
	clients, _ := g.Port(t, false), g.Port(t, false)
	for _, command := range []string{
		"set interface state pg0 up", "set interface state pg1 up", "set interface ip address pg0 192.168.16.1/24", "set interface ip address pg1 10.1.1.1/24",
		"nat44 plugin enable sessions 1000", "set interface nat44 in pg1 out pg0", "set interface nat44 in pg0 out pg1",
	} {
		g.Command(t, command)
	}
	locals := []nat44_ed.Nat44LbAddrPort{{Addr: [4]byte{10, 1, 1, 3}, Port: 8080, Probability: 7}, {Addr: [4]byte{10, 1, 1, 3}, Port: 8081, Probability: 7}}
	if retval := realvpp.NewRaw(t, p.Socket()).Retval(t, &nat44_ed.Nat44AddDelLbStaticMapping{
		IsAdd: true, Flags: nat_types.NAT_IS_OUT2IN_ONLY, ExternalAddr: [4]byte{10, 96, 0, 1}, ExternalPort: 80, Protocol: rule.TCP, LocalNum: 2, Locals: locals,
	}); retval != 0 {
		t.Fatalf("mapping: %d", retval)
	}
	a := apitest.Start(t, apitest.New(1), nil)
	done := make(chan result, 1)
	go func() { done <- lookAt(a, "capture shop/service-000 --packets 1 --vpp-api-socket "+p.Socket()) }()
	var r result
	for r.out+r.errs == "" {
		g.Exchange(t, []realvpp.Packet{{
			Port: clients, ID: 1, Src: netip.MustParseAddrPort("192.168.16.9:40000"), Dst: netip.MustParseAddrPort("10.96.0.1:80"), Proto: rule.TCP, Flags: 2,
		}})
		select {
		case r = <-done:
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, want := range []string{
		"Packet 1: TCP 192.168.16.9:40000 -> 10.96.0.1:80", "ip4-lookup looks for the route", "VPP: leaves through pg1, as 192.168.16.9:40000 -> 10.1.1.3:808",
		"Expected: ", "1 of the service shop/service-000 among ",
	} {
		if !strings.Contains(squeeze(r.out), want) {
			t.Errorf("no %q", want)
		}
	}
	if r.code != 0 || t.Failed() {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
	t.Log(r.out)
}

// TestCaptureRefuses a service without frontends that can be recognised, and limits.
func TestCaptureRefuses(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	for args, want := range map[string]string{
		"capture shop/none":                    "service shop/none: not found",
		"capture none":                         `"none" is not the name of a service: expected NAMESPACE/NAME`,
		"capture shop/service-000 --scan 5000": "expected --scan from 1 to 1000, --packets from 1 on, and a --time",
		"capture shop/service-000 --vpp-api-socket /nonexistent": "capture at VPP /nonexistent: waiting for VPP: stat /nonexistent: no such file or directory",
	} {
		if r := lookAt(a, args); r.code == 0 || r.errs != "troupe: "+want+"\n" {
			t.Errorf("troupe %s: exit code %d: %swant %s", args, r.code, r.errs, want)
		}
	}
}
