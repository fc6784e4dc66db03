// Command image builds the container image of the agent from this repository, FROM scratch, for
// several platforms, without docker and without a network:
//
//	go -C tools run ./image
//
// It is an archive in the layout of OCI, as containerd, podman, docker and skopeo read it. Two runs
// on one commit make the same archive. The image has the agent as /troupe, and directories for what
// is mounted under a read-only root. The version is the tag of the commit, or a pseudo-version with
// its revision. The list of modules in it (SBOM, SPDX 2.3) is written beside the archive. With
// -push the archive goes to a registry.
package main
