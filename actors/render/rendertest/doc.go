// Package rendertest is the stage for tests of renderers: that of actorstest/probe with one real
// renderer, and a simulated VPP behind a connection whose faults the test decides.
package rendertest
