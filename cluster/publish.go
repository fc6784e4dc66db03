package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/messages"
)

// wanted is the latest argument of Publish.
type wanted struct {
	asked     bool
	addresses []string // canonical
	invalid   []string
}

// want parses the argument of Publish.
func want(addresses []string) wanted {
	canonical, invalid := canonicalAddresses(addresses)
	return wanted{asked: true, addresses: canonical, invalid: invalid}
}

// decidePublish compares the stored addresses with the wanted addresses. It returns whether they
// are equal, a reason that names the invalid addresses, and the transaction that makes them equal.
// The name record is guarded too, so that a node without its ID does not publish.
func decidePublish(in input) (published bool, reason string, op *operation) {
	if !in.want.asked {
		return false, "", nil
	}
	if len(in.want.invalid) > 0 {
		reason = fmt.Sprintf("not published, because not an IP with a prefix length: %.200s", strings.Join(in.want.invalid, ", "))
	}
	k, self := in.keys, in.self.name
	stored := k.addresses[self]
	if stored.err == nil && slices.Equal(stored.value.GetVppAddresses(), in.want.addresses) && (stored.mod == 0) == (len(in.want.addresses) == 0) {
		return reason == "", reason, nil
	}
	op = &operation{
		verb: verbPublish, about: fmt.Sprintf("addresses %v of %s", in.want.addresses, self),
		guards: []guard{k.guardAddresses(self), k.guardName(self)},
	}
	if len(in.want.addresses) == 0 {
		op.branches = []branch{{deletes: []string{k.layout.addresses(self)}}}
		return false, reason, op
	}
	value, err := encodeAddresses(&messages.NodeAddresses{Name: self, VppAddresses: in.want.addresses})
	if err != nil {
		return false, err.Error(), nil
	}
	op.branches = []branch{{puts: []put{{k.layout.addresses(self), value}}}}
	return false, reason, op
}
