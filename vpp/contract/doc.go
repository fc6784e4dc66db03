// Package contract is the agreement between the agent and VPP, as tests: every message the agent sends, every return value it relies
// on, and what a dump contains afterwards.
//
// There is one table of cases and there are two targets. The simulated VPP (vpp/simulator) runs always; a real VPP 25.10 runs where
// TROUPE_VPP_BIN names its binary or vpp is on PATH, with its plugins in TROUPE_VPP_PLUGINS if they are not where the binary looks for
// them; otherwise one line says why it was skipped. A case that passes on one target only is a fault of the simulator, never of the
// case: so the simulator cannot drift from what it simulates.
//
//	go test ./vpp/contract
//	TROUPE_VPP_BIN=/path/to/vpp TROUPE_VPP_PLUGINS=/path/to/vpp_plugins go test ./vpp/contract
//
// Every case gets a VPP of its own that has just started. Cases reach it through vpp/link, as the agent does, and through Raw for messages that the
// guard of the link refuses.
//
// Cases about sessions send packets: the simulator is asked for the fate of each, a real VPP gets them from its own packet generator and
// writes what leaves it to a file, which needs neither privileges nor interfaces of the host.
//
// The package has no code besides its tests.
package contract
