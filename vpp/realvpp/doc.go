// Package realvpp runs a real VPP for a test, sends packets through it by its own packet generator,
// and messages that the agent never sends. Only tests import it.
//
// Find says whether there is a VPP: `vpp` on PATH, or the environment variables TROUPE_VPP_BIN and
// TROUPE_VPP_PLUGINS. A Process belongs to one test, which ends it; it needs no huge pages, no
// privileges and nothing outside its directory. TROUPE_VPP_WORKERS is the number of workers of
// every VPP, which may be more than the machine has cores; workers need the rights of root.
package realvpp
