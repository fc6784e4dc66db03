// Package contract tests the behaviour of VPP on which the agent relies: every message the agent
// sends, every return value it interprets, and the content of a dump afterwards.
//
// There is one table of cases and two targets. The simulated VPP (vpp/simulator) runs always; a
// real VPP runs where TROUPE_VPP_BIN names its binary or vpp is on PATH, with its plugins in
// TROUPE_VPP_PLUGINS if they are not where the binary looks for them; otherwise one line says why
// it was skipped. A case that passes on one target only is a fault of the simulator, never of the
// case, so that the simulator cannot drift from VPP.
//
//	go test ./vpp/contract
//	TROUPE_VPP_BIN=/path/to/vpp TROUPE_VPP_PLUGINS=/path/to/vpp_plugins go test ./vpp/contract
//
// The suite has been run on VPP 24.06, 25.10 and 26.06. Their differences are listed in
// versions_test.go; the simulator does what 25.10 does.
//
// Every case gets a VPP of its own that has just started. Cases reach it through vpp/link, as the
// agent does, and through realvpp.Raw for messages that the link refuses.
//
// Cases about sessions send packets: the simulator returns what happens to each, a real VPP gets
// them from its own packet generator and writes outgoing packets to a file, which needs neither
// privileges nor interfaces of the host.
//
// The package has no code besides its tests.
package contract
