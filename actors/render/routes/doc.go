// Package routes is the adapter of the renderer of routes. They refuse or drop packets to frontends
// without a row. Package vpp/routes plans, compares and talks to VPP.
//
// A wrong route cuts off a client, a missing one only lets it wait. So before the barrier a route
// is added only if no other service can claim its address, and none before the addresses of hosts
// are known.
//
// The adapter is plain data that belongs to the actor of its render.Driver.
package routes
