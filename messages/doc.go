// Package messages holds the messages of the actors as protobuf types, one .proto file per
// conversation.
//
//	world.proto      objects of Kubernetes: normalised Service, EndpointSlice, Node, Pod; Changed,
//	                 Snapshot
//	view.proto       how THIS node serves a service: ServiceView and its Frontends
//	dataplane.proto  desired and actual state of VPP: Render, RenderAck, InterfaceSet, LinkState
//	control.proto    supervision and resync: Ready, ServiceSpec, RenderUp, Begin, Replay, Health
//	cluster.proto    records shared by the nodes: the node record in the node store, node updates
//	mirror.proto     files on a node's disk for a start without API server and etcd
//
// Only messages that are stored, shown or compared as a whole are protobuf types. A signal that
// stays within the process is a Go struct of the package that it concerns, with netip addresses.
//
// A sent message is immutable, because sender and receiver share its memory. A changed value is a
// new message. The package has no logic and no types of Kubernetes or GoVPP; packages that use such
// types translate them at their edge.
//
// A message with a CoalesceKey (coalesce.go) is level-triggered: in a mailbox it supersedes a
// pending message of the same key. It takes its place at the end, so that it never overtakes
// earlier messages.
//
// The Go code is generated; after a change to a .proto file run
//
//	go generate ./messages
package messages

//go:generate go -C ../tools run ./protogen ../messages
