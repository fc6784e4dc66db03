package routes

import "testing"

// knows is the state of a VPP that knows our source and holds routes; 27 is an older one.
func knows(routes map[Place]Kind) *State {
	s := NewState()
	s.Older = []uint8{27, 30}
	s.Source = 26
	for place, kind := range routes {
		s.Routes[place] = kind
	}
	return s
}

func TestDiff(t *testing.T) {
	network, vip, lb := pfx("10.96.0.0/16"), pfx("10.96.0.1/32"), pfx("203.0.113.7/32")
	for _, c := range []struct {
		name  string
		have  *State
		want  Want
		sweep bool
		ops   []string
	}{
		{"nothing", NewState(), nil, true, nil},
		{"nothing is wanted of a VPP that knows us", knows(nil), nil, true, nil},
		{"from the beginning", NewState(), Want{vip: plainDrop, network: plainReject}, true, []string{
			"register FIB source troupe with priority 207", "add reject route 10.96.0.0/16", "add drop route 10.96.0.1/32",
		}},
		{"an external address", NewState(), Want{lb: externalReject, network: plainReject}, false, []string{
			"register FIB source troupe with priority 207", "add reject route 10.96.0.0/16", "add external reject route 203.0.113.7/32",
		}},
		{"as wanted", knows(map[Place]Kind{{network, 26}: Reject, {lb, 26}: Reject}), Want{lb: externalReject, network: plainReject}, true, nil},
		{"another kind", knows(map[Place]Kind{{vip, 26}: Reject}), Want{vip: plainDrop}, false, []string{"add drop route 10.96.0.1/32"}},
		{"another path", knows(map[Place]Kind{{vip, 26}: 0}), Want{vip: plainDrop}, false, []string{"add drop route 10.96.0.1/32"}},
		{"external from now on", knows(map[Place]Kind{{lb, 26}: Reject}), Want{lb: externalReject}, false, nil},
		{"of the source of earlier versions", knows(map[Place]Kind{{lb, 27}: Reject}), Want{lb: externalReject}, false, []string{
			"add external reject route 203.0.113.7/32", "delete route 203.0.113.7/32 of source 27",
		}},
		{"not wanted, a service has not rendered", knows(map[Place]Kind{{vip, 26}: Reject}), Want{network: plainReject}, false, []string{
			"add reject route 10.96.0.0/16",
		}},
		{"not wanted", knows(map[Place]Kind{{vip, 26}: Reject, {lb, 27}: Drop}), Want{network: plainReject}, true, []string{
			"add reject route 10.96.0.0/16", "delete route 10.96.0.1/32 of source 26", "delete route 203.0.113.7/32 of source 27",
		}},
		{"of an older source", knows(map[Place]Kind{{vip, 26}: Reject, {vip, 30}: Reject, {network, 30}: Reject}), Want{vip: plainReject, network: plainReject}, false, []string{
			"add reject route 10.96.0.0/16", "delete route 10.96.0.0/16 of source 30", "delete route 10.96.0.1/32 of source 30",
		}},
		{"of two sources and not wanted", knows(map[Place]Kind{{vip, 27}: Reject, {vip, 26}: Reject}), nil, true, []string{
			"delete route 10.96.0.1/32 of source 26", "delete route 10.96.0.1/32 of source 27",
		}},
		{"IPv6 after IPv4", knows(nil), Want{pfx("fd96::/108"): plainReject, network: plainReject, pfx("10.96.0.0/12"): plainReject}, true, []string{
			"add reject route 10.96.0.0/12", "add reject route 10.96.0.0/16", "add reject route fd96::/108",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, "operations", c.ops, describe(Diff(c.have, c.want, c.sweep)))
		})
	}
}

// TestDiffNamesItsSource: an operation carries the id of the state, so that Apply notices when it
// has changed.
func TestDiffNamesItsSource(t *testing.T) {
	vip := pfx("10.96.0.1/32")
	check(t, "known", []Op{{Verb: Add, Source: 26, Prefix: vip, Route: externalReject}}, Diff(knows(nil), Want{vip: externalReject}, true))
	check(t, "to be registered", []Op{{Verb: Register}, {Verb: Add, Prefix: vip, Route: Route{Kind: Drop}}}, Diff(NewState(), Want{vip: plainDrop}, true))
}
