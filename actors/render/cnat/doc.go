// Package cnat is the adapter of the renderer of CNAT translations, the interfaces that they need, and source NAT. Package vpp/cnat plans, compares and talks to
// VPP.
//
// VPP does not say whose a translation is. Under a key that a service wants it is ours. Others are ours where the address is a cluster IP, or one of the node:
// they go when the barrier has been passed. A translation of another address, of a service that was deleted while there was no agent, stays unless the local
// mirror still knew the service.
//
// The adapter is plain data that belongs to the actor of its render.Driver.
package cnat
