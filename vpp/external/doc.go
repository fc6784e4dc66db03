// Package external is the configuration of NAT from outside of Kubernetes, in layers: a file, keys
// in etcd, the control socket. It is pure: it computes the desired state of VPP from documents.
//
//	Decode   one document -> Layer, or every error in it with object and field
//	Merge    layers -> one owner per entry, by priority; an entry that conflicts with one of a
//	         higher rank is refused with the owner's name
//	Rows     the merged mappings as rows of vpp/nat44; Addresses and Roles give the SNAT pool and
//	         the roles of interfaces
//
// A layer is always complete: another document of the same source replaces it. When a layer is
// removed, the entries below it apply again. An unknown source is an empty layer.
//
// Services come first: actors/render decides conflicts with rows of services, and treats external
// rows as the youngest.
package external
