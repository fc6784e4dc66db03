// Package fib is a forwarding table of the simulated VPP: routes by prefix and source, and the
// order of the sources. It is plain data without a lock; the model that holds the tables is locked
// by its owner.
package fib
