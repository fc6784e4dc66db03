// Package acceptance is the acceptance level "through the running troupe". It has tests only.
//
// Each test builds whole nodes: a cluster in memory, a simulated VPP behind its socket, and the
// troupe on the real dispatcher between the two. Nothing is shared between nodes, so they run in
// parallel. The content of VPP is read from the simulator and never from the troupe. The statements
// of the troupe are only used to judge deviations.
//
//   - The cases of the acceptance file, with all their steps. Checked are the rows in VPP,
//     translated back into frontends, connections from each kind of client, the writes of each
//     step, and health-check node ports over HTTP. If NAT44 cannot do what Kubernetes asks, the
//     troupe has to report it for exactly that frontend, and the report has to be true.
//   - Connections held open over a thousand random changes of the cluster.
//   - Random clusters and sequences of changes: the result is the same as from scratch, and an
//     agent restart writes nothing.
//
// The file of the cases is beside the checkout. If it is missing, its test is skipped and says so.
package acceptance
