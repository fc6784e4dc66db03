// Package build makes the binaries of the tiers with a real Kubernetes: etcd, kube-apiserver, the
// controllers and kubelet from the module test/kubernetes, containerd, its shim, ctr and CNI
// plugins from the module test/containerd, Consul from the module test/consul, and the agent from
// the root module.
//
// A program of these modules but the agent is built once into troupe-test/KEY in the user's cache
// directory, when a test wants it. KEY is the hash of everything that decides the content: Go's
// version and platform, the flags, and go.mod, go.sum and the sources of the module. A file lock
// lets one process build while others wait; a binary gets its name when it is complete, so a build
// that was interrupted leaves nothing that is used. Nothing is ever removed from the cache.
package build
