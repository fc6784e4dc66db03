package contract

import (
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// config reads the running configuration.
func config(t testing.TB, v *rig) *nat44_ed.Nat44ShowRunningConfigReply {
	t.Helper()
	return ask[*nat44_ed.Nat44ShowRunningConfigReply](t, v, &nat44_ed.Nat44ShowRunningConfig{})
}

// vppTimeouts are the timeouts of a plugin that was just enabled.
var vppTimeouts = nat_types.NatTimeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60}

// workers is the number of workers of VPP.
func (v *rig) workers(t testing.TB) int {
	t.Helper()
	return int(ask[*vlib.ShowThreadsReply](t, v, &vlib.ShowThreads{}).Count) - 1
}

// first puts what is done about several workers before other operations.
func (v *rig) first(t testing.TB, verbs ...string) []string {
	t.Helper()
	if v.workers(t) > 1 {
		return append([]string{"one-worker"}, verbs...)
	}
	return verbs
}

// empty is the state of a VPP that has just been started.
func (v *rig) empty(t testing.TB) *nat44.State {
	t.Helper()
	state := nat44.NewState()
	if n := v.workers(t); n > 1 {
		state.Workers = n
	}
	return state
}

var pluginCases = []contractCase{
	{"plugin/no sessions means disabled", func(t *testing.T, v *rig) {
		if got := config(t, v); got.Sessions != 0 || got.ForwardingEnabled {
			t.Errorf("configuration %+v", got)
		}
		check(t, "state", v.empty(t), v.read(t))
	}},
	{"plugin/disabled refuses what needs it", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		for _, msg := range []api.Message{
			row(local(1), local(2)), noRow(), addLocal(local(1)), delLocal(local(1)), static(), noStatic(), identity(),
			twiceNAT(vip, vip), role(true, index, inside), role(false, index, outside), output(true, index), output(false, index),
		} {
			v.expect(t, unsupported, msg)
		}
		v.expect(t, noInterface, role(true, 99, inside))
		v.expect(t, alreadyDisabled, &nat44_ed.Nat44EdPluginEnableDisable{})
	}},
	{"plugin/disabled takes settings", func(t *testing.T, v *rig) {
		v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
		v.expect(t, ok, &nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 2, TCPTransitory: 3, ICMP: 4})
		got := config(t, v)
		if want := (nat_types.NatTimeouts{UDP: 1, TCPEstablished: 2, TCPTransitory: 3, ICMP: 4}); !got.ForwardingEnabled || got.Timeouts != want || got.Sessions != 0 {
			t.Errorf("configuration %+v", got)
		}
	}},
	{"plugin/disabled dumps nothing", func(t *testing.T, v *rig) {
		if n := len(rows(t, v)) + len(dump[api.Message](t, v, &nat44_ed.Nat44InterfaceDump{})) +
			len(dump[api.Message](t, v, &nat44_ed.Nat44AddressDump{})) + len(dump[api.Message](t, v, &nat44_ed.Nat44StaticMappingDump{})) +
			len(dump[api.Message](t, v, &nat44_ed.Nat44IdentityMappingDump{})) + len(dump[api.Message](t, v, &nat44_ed.Nat44EdOutputInterfaceGet{})); n > 0 {
			t.Errorf("%d details", n)
		}
	}},
	{"plugin/enable", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, alreadyEnabled, enable)
		if got := config(t, v); got.Sessions != 1024 || got.ForwardingEnabled || got.Timeouts != vppTimeouts {
			t.Errorf("configuration %+v", got)
		}
	}},
	{"plugin/enable by default", func(t *testing.T, v *rig) {
		v.expect(t, ok, &nat44_ed.Nat44EdPluginEnableDisable{Enable: true})
		if got := config(t, v); got.Sessions != 64512 {
			t.Errorf("%d sessions", got.Sessions)
		}
	}},
	{"plugin/unsupported modes", func(t *testing.T, v *rig) {
		for _, flags := range []nat44_ed.Nat44ConfigFlags{nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY, nat44_ed.NAT44_IS_CONNECTION_TRACKING} {
			v.expect(t, unsupported, &nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Flags: flags})
		}
		if got := config(t, v); got.Sessions != 0 {
			t.Errorf("configuration %+v", got)
		}
	}},
	{"plugin/enable resets forwarding and timeouts", func(t *testing.T, v *rig) {
		v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
		v.expect(t, ok, &nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 2, TCPTransitory: 3, ICMP: 4})
		v.expect(t, ok, enable)
		if got := config(t, v); got.ForwardingEnabled || got.Timeouts != vppTimeouts {
			t.Errorf("configuration %+v", got)
		}
	}},
	{"plugin/forwarding and timeouts", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
		v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
		v.expect(t, ok, &nat44_ed.NatSetTimeouts{UDP: 60, TCPEstablished: 7440, TCPTransitory: 240, ICMP: 60})
		if got := config(t, v); !got.ForwardingEnabled || got.Timeouts.UDP != 60 || got.Timeouts.TCPEstablished != 7440 {
			t.Errorf("configuration %+v", got)
		}
		v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{})
		if got := config(t, v); got.ForwardingEnabled {
			t.Errorf("configuration %+v", got)
		}
	}},
	{"plugin/session limit is stored and not returned", func(t *testing.T, v *rig) {
		v.expect(t, ok, enable)
		v.expect(t, ok, &nat44_ed.Nat44SetSessionLimit{SessionLimit: 4096})
		v.expect(t, ok, &nat44_ed.Nat44SetSessionLimit{SessionLimit: 4096})
		if got := config(t, v); got.Sessions != 1024 {
			t.Errorf("%d sessions", got.Sessions)
		}
		v.expect(t, unspecified, &nat44_ed.Nat44SetSessionLimit{SessionLimit: 4096, VrfID: 77})
	}},
	{"plugin/disable forgets everything", func(t *testing.T, v *rig) {
		index := loopback(t, v)
		for range 2 {
			v.expect(t, ok, enable)
			v.expect(t, ok, twiceNAT(vip, vip))
			v.expect(t, ok, role(true, index, outside))
			v.expect(t, ok, role(true, index, inside))
			v.expect(t, ok, row(local(1), local(2)))
			v.expect(t, ok, noRow())
			v.expect(t, ok, &nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
			v.expect(t, ok, &nat44_ed.Nat44EdPluginEnableDisable{})
			if got := v.read(t); got.Enabled {
				t.Errorf("state %+v", got)
			}
		}
		v.expect(t, ok, enable)
		state := v.read(t)
		if len(state.Roles)+len(state.TwiceNAT)+len(state.Rows)+len(state.Foreign) > 0 || state.Forwarding {
			t.Errorf("state %+v", state)
		}
	}},
	{"plugin/workers", func(t *testing.T, v *rig) {
		if v.workers(t) > 1 {
			v.expect(t, ok, &nat44_ed.NatSetWorkers{WorkerMask: 1})
			check(t, "workers", 1, v.read(t).Workers)
			return
		}
		check(t, "workers", 0, v.read(t).Workers)
		v.expect(t, featureDisabled, &nat44_ed.NatSetWorkers{WorkerMask: 1})
	}},
}
