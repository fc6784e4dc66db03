// Package sigkill has tests only: the agent as a process of its own is killed by SIGKILL again and again, also in the middle of what it tells VPP,
// while the services change. VPP is the simulated one, behind its socket, and outlives all agents; it is what can be looked at.
//
//	the loop            who is killed when                              TestKills
//	process             the program, started from the test binary
//	witness             what VPP was asked for; the fuse by which somebody dies at the nth request
//	cluster             the directory of manifests, its random changes, and the rows that follow from it
//	check               VPP against the cluster, and who wrote what
//	traffic             connections that are held open over all kills
//
// Everything random follows from one seed, which is printed; when a process dies depends on the machine as well.
package sigkill
