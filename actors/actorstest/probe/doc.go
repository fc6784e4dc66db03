// Package probe is a stage for the tests of single actors: the actors under test are real and stand
// at their paths in the tree; at every other path stands a probe, which records what it is sent and
// answers nothing. So a test sees exactly what an actor says, and says itself what others would. It
// also has the objects of all tests of actors: the node, its VPP, and the Services and pods of the
// cluster.
//
// A Stage runs in virtual time on the goroutine of the test. Functions of actors that wait must do
// so with Stage.Sim (Park, Sleep). The end of the test stops the tree and fails when something of
// it does not end.
package probe
