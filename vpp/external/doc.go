// Package external is configuration of NAT that comes from outside of Kubernetes, in layers: a file, keys in etcd, the control socket. It is
// pure: it turns documents into the desired state of VPP.
//
//	Decode   one document -> Layer, or every error in it with object and field
//	Merge    layers -> one owner per entry, by priority; what contradicts an entry that ranks higher is refused with the owner's name
//	Rows     the mappings of what was merged, as rows of vpp/nat44; Addresses and Roles give the SNAT pool and the roles of interfaces
//
// A layer is always complete: another document of the same source replaces it. Removing a layer lets what lies below come up again. An
// unknown source is an empty layer.
//
// Services come first: conflicts with rows of services are decided by nat44.Claims, in which external rows are the youngest.
package external
