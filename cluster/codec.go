package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-vpp/troupe/messages"
)

const (
	// maxRecord bounds a NodeRecord: a name, a UID and a number, with room for fields of later
	// versions.
	maxRecord = 4 << 10
	// maxAddresses bounds NodeAddresses: some hundred prefixes.
	maxAddresses = 64 << 10
	// maxUID bounds metadata.uid; the limit of the API server is lower.
	maxUID = 256
)

// encode marshals a record as JSON (protojson), so that operators can read it with etcdctl or
// kubectl.
func encode(m proto.Message, limit int) (string, error) {
	value, err := protojson.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	if len(value) > limit {
		return "", fmt.Errorf("encode %s: %w: %d of %d bytes", m.ProtoReflect().Descriptor().Name(), ErrTooLarge, len(value), limit)
	}
	return string(value), nil
}

func encodeRecord(r *messages.NodeRecord) (string, error) { return encode(r, maxRecord) }

func encodeAddresses(a *messages.NodeAddresses) (string, error) { return encode(a, maxAddresses) }

// decode is the inverse of encode. It ignores unknown fields, because an agent of a later version
// may write new ones.
func decode(value []byte, m proto.Message, limit int) error {
	if len(value) > limit {
		return fmt.Errorf("%w: %w: %d of %d bytes", ErrUndecodable, ErrTooLarge, len(value), limit)
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, m); err != nil {
		// protojson varies its error texts between builds on purpose. The reason must stay the same
		// as long as the value does, so it does not contain them.
		return fmt.Errorf("%w: not the JSON of a %s", ErrUndecodable, m.ProtoReflect().Descriptor().Name())
	}
	return nil
}

// decodeRecord reads the value under an id or name key. A record that contradicts its key is
// undecodable.
func decodeRecord(key parsedKey, value []byte) (*messages.NodeRecord, error) {
	record := &messages.NodeRecord{}
	if err := decode(value, record, maxRecord); err != nil {
		return nil, err
	}
	switch {
	case record.GetId() == 0 || key.kind == kindID && record.GetId() != key.id:
		return nil, fmt.Errorf("%w: ID %d does not match the key", ErrUndecodable, record.GetId())
	case !validNodeName(record.GetName()) || key.kind == kindName && record.GetName() != key.name:
		return nil, fmt.Errorf("%w: name %.64q does not match the key", ErrUndecodable, record.GetName())
	case len(record.GetUid()) > maxUID:
		return nil, fmt.Errorf("%w: UID of %d bytes", ErrUndecodable, len(record.GetUid()))
	}
	return record, nil
}

// decodeAddresses reads the value under an addresses key, in canonical form.
func decodeAddresses(key parsedKey, value []byte) (*messages.NodeAddresses, error) {
	stored := &messages.NodeAddresses{}
	if err := decode(value, stored, maxAddresses); err != nil {
		return nil, err
	}
	if stored.GetName() != key.name {
		return nil, fmt.Errorf("%w: name %.64q does not match the key", ErrUndecodable, stored.GetName())
	}
	addresses, invalid := canonicalAddresses(stored.GetVppAddresses())
	if len(invalid) > 0 {
		return nil, fmt.Errorf("%w: address %.64q is not an IP with a prefix length", ErrUndecodable, invalid[0])
	}
	return &messages.NodeAddresses{Name: stored.GetName(), VppAddresses: addresses}, nil
}

// canonicalAddresses returns the distinct addresses "ip/len" in canonical form and order, and the
// invalid texts. It keeps the host part and the length: 10.0.0.1/24 and 10.0.0.1/16 are different
// addresses.
func canonicalAddresses(texts []string) (canonical, invalid []string) {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			invalid = append(invalid, text)
			continue
		}
		prefixes = append(prefixes, netip.PrefixFrom(prefix.Addr().Unmap(), unmappedBits(prefix)))
	}
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	for _, p := range slices.Compact(prefixes) {
		canonical = append(canonical, p.String())
	}
	return canonical, invalid
}

// unmappedBits returns the prefix length of an address without the prefix ::ffff:0:0/96.
func unmappedBits(p netip.Prefix) int {
	if p.Addr().Is4In6() {
		return max(p.Bits()-96, 0)
	}
	return p.Bits()
}
