// Package rendertest is the stage for tests of renderers: the stage of actorstest/probe with one
// real renderer and a simulated VPP. The test decides about faults of the connection.
package rendertest
