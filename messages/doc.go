// Package messages holds what the actors exchange, as protobuf types: one .proto file per
// conversation.
//
//	world.proto      what Kubernetes says: normalised Service, EndpointSlice, Node, Pod; Changed,
//	                 Snapshot
//	view.proto       what THIS node serves: ServiceView and its Frontends
//	dataplane.proto  what VPP should do and does: Render, RenderAck, InterfaceSet, LinkState
//	control.proto    supervision and resync: Ready, ServiceSpec, RollCall, RenderUp, Begin,
//	                 Replay, Health
//	cluster.proto    what the nodes agree on: the node record in etcd, node updates
//	mirror.proto     what a node keeps on its disk for a start without API server and etcd
//
// A message is immutable from the moment it is sent: sender and receiver share its memory. Another
// value is another message. There is no logic here and no type of Kubernetes or GoVPP; the packages
// that use those translate at their edge.
//
// A message with a CoalesceKey (coalesce.go) is level-triggered: in a mailbox it supersedes a
// pending message of the same key, and takes its place at the end, so that it never overtakes what
// was sent before it.
//
// The Go code is generated; after a change to a .proto file run
//
//	go generate ./messages
package messages

//go:generate go -C ../tools run ./protogen ../messages
