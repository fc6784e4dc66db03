// Package external is the actor for configuration from outside of Kubernetes. Files, etcd and
// commands have layers of NAT mappings, addresses and interface roles; dynamic SNAT is the lowest
// layer. vpp/external decodes and merges the layers, as pure functions.
//
// The actor owns the layers and their saved documents. It sends the merged layers to one renderer
// (Wants), which answers with a Status. Sources are watched in a goroutine of the actor and end
// with the incarnation. Stop answers the commands under way; nothing leaves VPP.
package external
