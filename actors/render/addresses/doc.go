// Package addresses is the adapter of the renderer of virtual routers: VPP answers ARP and
// neighbour solicitations for load-balancer addresses while this node owns them. Package
// kube/addresses puts addresses into groups, package vpp/vrrp compares and talks to VPP, and VPP
// elects the owner.
//
// A group is configured while a Service has one of its addresses and this node may serve each of
// these Services: a Service with the Local policy needs an endpoint here. The group goes on while
// the agent restarts or dies, because VPP forwards without it. A node takes part in elections when
// all of its renderers have been in sync once, so that no packet reaches a VPP without rows. It
// gives its groups up when a renderer cannot program VPP for longer than a restart takes, and when
// it is asked to leave.
//
// The adapter is plain data that belongs to the actor of its render.Driver.
package addresses
