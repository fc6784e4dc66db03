// Package desired decides what the node should serve: the registry of all services, one actor for
// each service, and node sync.
//
//	registry   listens to the source; key -> input and generation; which services exist; the lists
//	           of the renderers
//	service    one actor per service: input -> view (kube/service.Resolve) -> renderers
//	nodes      node sync: node IDs and VPP addresses of the peers
//
// # The flow
//
//	source -> registry -> service -> renderers
//	                         ^          |
//	                         |-- Ack ---|
//
// Every hop is level-triggered. A message carries the whole latest value of one key with a
// generation. Inside the process a message is lost only with the actor that was handling it. The
// Start of the next incarnation asks again (Listen, PullSpec, RenderUp), so nothing is sent
// twice.
//
// # Ownership and ordering
//
// Generations of the source grow with each delivery, and a mailbox keeps the order of one sender.
// So the registry takes inputs that are newer than all before and ignores the rest. The registry
// does no I/O. Callbacks of the source only post messages.
//
// The package is called by the tree of package actors. Shutdown stops the actors; nothing is
// removed from VPP by it.
package desired
