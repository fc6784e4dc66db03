// Package batch is the part that the appliers of vpp/nat44, vpp/cnat, vpp/routes and vpp/acl share:
// they send the messages of operations in one batch and return an Outcome for each operation. It
// keeps no state, and functions may be called from any goroutine.
package batch
