// Package cnat is the adapter of the renderer of CNAT translations, the interfaces that they need,
// and source NAT. Package vpp/cnat plans, compares and talks to VPP.
//
// The adapter is plain data that belongs to the actor of its render.Driver.
package cnat
