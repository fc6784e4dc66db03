package contract

import (
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/realvpp"
)

// tooMany makes a row of 256 entries.
func tooMany() *nat44_ed.Nat44AddDelLbStaticMapping {
	locals := make([]nat44_ed.Nat44LbAddrPort, 256)
	for i := range locals {
		locals[i] = local(byte(i))
		locals[i].Probability = 0
	}
	locals[0].Probability = 7
	return row(locals...)
}

// noPaths makes a CNAT translation without a path.
func noPaths() *cnat.CnatTranslationUpdate {
	msg := &cnat.CnatTranslationUpdate{}
	msg.Translation.IPProto = 6
	msg.Translation.Vip.SwIfIndex = none
	msg.Translation.Vip.Port = 80
	return msg
}

var guardCases = []contractCase{
	{"guard/refuses what crashes VPP", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		balanced := row(local(1), local(2))
		balanced.Locals[0].Probability, balanced.Locals[1].Probability = 128, 128
		heavy := row(local(1), local(2))
		heavy.Locals[0].Probability, heavy.Locals[1].Probability = 255, 1
		weightless := row(local(1), local(2))
		weightless.Locals[0].Probability, weightless.Locals[1].Probability = 0, 0
		deletion := tooMany()
		deletion.IsAdd = false
		for _, msg := range []api.Message{
			tooMany(), deletion, balanced, heavy, weightless, noPaths(), &cnat.CnatSessionPurge{},
			&vlib.CliInband{Cmd: "clear nat44 ed sessions"}, &vlib.CliInband{Cmd: "set nat44 session limit 5"},
		} {
			v.refused(t, msg)
		}
		check(t, "rows", nil, rows(t, v))
	}},
	{"guard/256 backends crash VPP", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		realvpp.NewRaw(t, v.Socket()).Send(t, tooMany())
		v.WaitDead(t)
		v.waitDown(t)
		v.Restart(t)
		v.waitUp(t)
		if v.read(t).Enabled {
			t.Error("the plugin is enabled")
		}
	}},
	{"guard/a translation without paths crashes VPP", func(t *testing.T, v *rig) {
		realvpp.NewRaw(t, v.Socket()).Send(t, noPaths())
		v.WaitDead(t)
		v.waitDown(t)
	}},
}
