// Package routes is the adapter of the renderer of routes that refuse or drop what no row serves.
// Package vpp/routes plans, compares and talks to VPP.
//
// A wrong route cuts off a client, a missing one only lets it wait. So before the barrier the
// adapter only lets through what no other service can object to, and nothing at all before the
// addresses of hosts are known.
//
// The adapter is plain data that belongs to the actor of its render.Driver.
package routes
