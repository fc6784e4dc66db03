// Package oci writes container images FROM scratch: an archive in the layout of the OCI image
// specification, as containerd, podman, docker and skopeo read it. Write is a function of its
// arguments: equal images are equal archives, byte by byte.
package oci
