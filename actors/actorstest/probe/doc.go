// Package probe is a stage for the tests of single actors. The actors under test are real and stand
// at their paths in the tree. At every other path stands a probe, which records its messages and
// answers nothing. So a test sees exactly the messages of an actor, and sends the messages of the
// others itself. The package also has the objects of all tests of actors: the node, its VPP, and
// the Services and pods of the cluster.
//
// A Stage runs in virtual time on the goroutine of the test. Functions of actors must wait with
// Stage.Sim (Park, Sleep). The end of the test stops the tree, and fails if a part of it does not
// end.
package probe
