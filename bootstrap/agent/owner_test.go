package agent

import (
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	httpapi "github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// TestSourceNATOfOthersStays: what another client of VPP has set up of CNAT survives start, restart
// and clean-up of an agent, with each renderer. IPv4 by CNAT is not ready then.
func TestSourceNATOfOthersStays(t *testing.T) {
	for renderer, ready := range map[string]bool{config.RendererAuto: true, config.RendererDual: true, config.RendererCNAT: false} {
		t.Run(renderer, func(t *testing.T) {
			cfg := withVPP(t, shortDir(t))
			cfg.Renderer, cfg.CleanupOnExit = renderer, true
			vpp := simulator.New(simulator.Options{})
			connectUplink(t, vpp)
			onePod(t, vpp)
			up, err := vpp.AddInterface("up", nil, true)
			network, failed := ip_types.ParsePrefix("10.1.0.0/16")
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			vip := cnat.CnatEndpoint{Addr: ip_types.Address{Un: ip_types.AddressUnionIP4([4]byte{10, 96, 0, 99})}, SwIfIndex: ^interface_types.InterfaceIndex(0), Port: 80}
			backend := cnat.CnatEndpoint{Addr: ip_types.Address{Un: ip_types.AddressUnionIP4([4]byte{10, 1, 2, 2})}, SwIfIndex: ^interface_types.InterfaceIndex(0), Port: 8080}
			for _, msg := range []api.Message{
				&cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_IF_PFX},
				&cnat.CnatSetSnatAddresses{SnatIP4: [4]byte{192, 168, 50, 1}, SwIfIndex: ^interface_types.InterfaceIndex(0)},
				&cnat.CnatSnatPolicyAddDelExcludePfx{IsAdd: 1, Prefix: network},
				&cnat.CnatSnatPolicyAddDelIf{SwIfIndex: interface_types.InterfaceIndex(up), IsAdd: 1, Table: cnat.CNAT_POLICY_INCLUDE_V4},
				&cnat.CnatTranslationUpdate{Translation: cnat.CnatTranslation{Vip: vip, IPProto: ip_types.IP_API_PROTO_TCP, NPaths: 1, Paths: []cnat.CnatEndpointTuple{{DstEp: backend}}}},
			} {
				if answers, err := virtual.NewReader(vpp).Do(t.Context(), []api.Message{msg}); err != nil || answers[0].Err != nil {
					t.Fatal(msg.GetMessageName(), err, answers)
				}
			}
			if err := vpp.Listen(cfg.VPP.APISocket); err != nil {
				t.Fatal(err)
			}
			defer vpp.Close()
			before := ofCNAT(vpp)
			for range 2 {
				a, err := Start(cfg, quiet())
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, "the state of readiness", func() bool {
					r := a.Backend().Readiness()
					barred := slices.ContainsFunc(a.Backend().Readiness().Parts, func(p httpapi.Part) bool {
						return p.Name == "cnat" && !p.OK && strings.Contains(p.Reason, "192.168.50.1 belongs to another client")
					})
					return r.Ready == ready && barred == !ready
				})
				if now := ofCNAT(vpp); now != before {
					t.Errorf("%s\nbecame\n%s", before, now)
				}
				stop(t, a) // with its clean-up
				if now := ofCNAT(vpp); now != before {
					t.Errorf("after the clean-up %s\nbecame\n%s", before, now)
				}
			}
		})
	}
}

// ofCNAT is what the simulator has of IPv4 in CNAT, and of source NAT.
func ofCNAT(vpp *simulator.VPP) string {
	var found []string
	for line := range strings.Lines(vpp.State()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "snat ") || strings.HasPrefix(line, "translation ") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "\n")
}
