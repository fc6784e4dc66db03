// Package model is the state of one incarnation of the simulated VPP: a network (package vnet) with
// its plugins (nat, acl), and the graph that takes a packet through all of them. It has no lock and
// no I/O.
package model
