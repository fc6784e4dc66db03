// Package acceptance is the acceptance level "through the running troupe". It has no code but
// tests.
//
// Each test builds whole nodes: a cluster in memory, a simulated VPP behind its socket, and the
// troupe on the real dispatcher between the two. Nothing is shared between nodes, so they run in
// parallel. What VPP holds is read from the simulator and never from the troupe; what the troupe
// says of itself is only used to judge deviations.
//
//   - The cases of the acceptance file, with all their steps: the rows in VPP translated back into
//     frontends, connections from each kind of client, the writes of each step. Where NAT44 cannot
//     do what Kubernetes asks the troupe has to say so for exactly that frontend, and what it says
//     has to be true: see report and deviation. Health-check node ports are asked over HTTP.
//   - Connections held open over a thousand random changes of the cluster.
//   - Random clusters and sequences of changes: the result is the same as from scratch, and an
//     agent restart writes nothing.
//
// The file of the cases stands beside the checkout; where it is missing its test is skipped and
// says so.
package acceptance
