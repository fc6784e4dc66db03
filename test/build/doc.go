// Package build makes the binaries of the control plane tier: etcd, kube-apiserver and the controllers from the module test/kubernetes, and the agent
// from the root module.
//
// The control plane is built once into troupe-test/KEY in the user's cache directory. KEY is the hash of everything that decides the content: Go's
// version and platform, and go.mod, go.sum and the sources of test/kubernetes. A file lock lets one process build while others wait; the directory
// gets its name when it is complete, so a build that was interrupted leaves nothing that is used. Nothing is ever removed from the cache.
package build
