// Package stage has what tests with the agent on real nodes share: the agent as a DaemonSet, with
// the image of deploy/image and the manifests of deploy/kubernetes, in which the image, the address
// of the API server and the networks of the cluster are filled in, and a cluster from nothing, whose
// pods talk through a real VPP only.
package stage
