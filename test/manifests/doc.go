// Package manifests has the manifests of deploy/kubernetes as an administrator edits them and
// kubectl apply -k sends them. Tests of the manifests and of the DaemonSet call it; everything is
// synchronous and in a directory of the test.
package manifests
