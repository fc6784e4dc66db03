// Package external is the actor for configuration from outside of Kubernetes: layers of NAT
// mappings, addresses and interface roles from a file, etcd and commands, and dynamic SNAT as the
// lowest layer. vpp/external decodes and merges them, as pure functions.
//
// The actor owns the layers and what was saved of them. What all layers want together goes to one
// renderer (Wants), which answers with a Status. Sources are watched in a goroutine of the actor
// and end with the incarnation. Stop answers the commands under way; what is in VPP stays.
package external
