// Package addresses decides which addresses Services of type LoadBalancer get from pools.
//
// Allocate is a pure function of the pools and of the Services with the addresses in their status.
// The status is the only memory: after a crash the next call gives the same addresses again, and
// never gives one twice. Functions may be called from any goroutine.
package addresses
