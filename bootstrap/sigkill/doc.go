// Package sigkill has tests only: they kill an agent, in a process of its own, by SIGKILL many
// times, also between two requests to VPP, while the services change. VPP is the simulated one
// behind its socket; it survives all agents, and the tests inspect it.
//
//	the loop            which process is killed when                    TestKills
//	process             the program, started from the test binary
//	witness             the requests to VPP; kills a process at the nth request
//	cluster             the directory of manifests, its random changes, and the rows that follow
//	                    from it
//	check               VPP against the cluster, and the writer of each row
//	traffic             connections that stay open over all kills
//
// All random choices follow from one seed, which is printed; the time of a kill also depends on the
// machine.
package sigkill
