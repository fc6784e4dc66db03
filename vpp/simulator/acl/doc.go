// Package acl is the acl plugin of the simulated VPP: access lists, the lists of each interface,
// and the flows that reflecting rules let pass.
package acl
