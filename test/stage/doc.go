// Package stage starts the agent on real nodes for tests: as a DaemonSet, with the image of
// tools/image and the manifests of deploy/kubernetes. It fills in the image, the address of the API
// server and the networks of the cluster. FromNothing starts a cluster whose pods talk through a
// real VPP only.
//
// RenderManifests and Helm send what deploy/ gives to an administrator.
package stage
