package cluster

import (
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	// leaseLabel marks the Leases of the node store, so that lists and watches leave out other
	// Leases of the namespace.
	leaseLabel = "troupe.dev/node-store"
	// leaseIDPrefix is the prefix of the name of an ID's Lease. No node may have such a name.
	leaseIDPrefix = "troupe-id-"
	// Annotations of a Lease: the JSON of a NodeRecord, and of NodeAddresses.
	recordAnnotation    = "troupe.dev/record"
	addressesAnnotation = "troupe.dev/vpp-addresses"
)

// leaseLayout is the layout of the Leases in a namespace. A key is an annotation of a Lease: "lease
// NAMESPACE/NAME" its record, "lease NAMESPACE/NAME addresses" its addresses. Both keys of one
// Lease have one revision, its resource version.
type leaseLayout struct{ namespace string }

func (l leaseLayout) root() string { return "lease " + l.namespace + "/" }

func (l leaseLayout) id(id uint32) string {
	return l.root() + leaseIDPrefix + strconv.FormatUint(uint64(id), 10)
}

func (l leaseLayout) name(name string) string { return l.root() + name }

func (l leaseLayout) addresses(name string) string { return l.root() + name + " addresses" }

func (l leaseLayout) parse(key string) parsedKey {
	lease, annotation := l.split(key)
	digits, isID := strings.CutPrefix(lease, leaseIDPrefix)
	switch {
	case !validNodeName(lease):
		return parsedKey{}
	case !isID && annotation == addressesAnnotation:
		return parsedKey{kind: kindAddresses, name: lease}
	case !isID:
		return parsedKey{kind: kindName, name: lease}
	}
	id, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || id == 0 || l.id(uint32(id)) != key {
		return parsedKey{}
	}
	return parsedKey{kind: kindID, id: uint32(id)}
}

// split returns the name of the Lease and the annotation of a key; "" if the key does not belong to
// this layout.
func (l leaseLayout) split(key string) (lease, annotation string) {
	rest, ok := strings.CutPrefix(key, l.root())
	if !ok {
		return "", ""
	}
	if lease, ok := strings.CutSuffix(rest, " addresses"); ok {
		return lease, addressesAnnotation
	}
	return rest, recordAnnotation
}

// changes returns the changes of keys that a Lease, or its deletion, means. A Lease without a
// record counts as a Lease with an undecodable record.
func (l leaseLayout) changes(lease *coordinationv1.Lease, mod int64, deleted bool) []change {
	all := []change{{pair: pair{key: l.name(lease.Name), value: []byte(lease.Annotations[recordAnnotation]), mod: mod}, deleted: deleted}}
	if strings.HasPrefix(lease.Name, leaseIDPrefix) {
		return all
	}
	addresses, ok := lease.Annotations[addressesAnnotation]
	return append(all, change{pair: pair{key: l.addresses(lease.Name), value: []byte(addresses), mod: mod}, deleted: deleted || !ok})
}
