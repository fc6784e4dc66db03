package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/troupe-vpp/troupe/messages"
)

// kind is the type of a key.
type kind int

const (
	kindUnknown kind = iota
	kindID
	kindName
	kindAddresses
)

// layout builds and parses the keys of a store; doc.go lists them.
type layout interface {
	id(id uint32) string
	name(node string) string
	addresses(node string) string
	// parse parses a key. Any key that this layout would not build itself is kindUnknown.
	parse(key string) parsedKey
}

// etcdLayout is the layout of etcd: all keys are under one prefix.
type etcdLayout struct{ prefix string }

// root is the prefix of all keys that the store reads.
func (l etcdLayout) root() string { return l.prefix + "/nodes/" }

func (l etcdLayout) id(id uint32) string {
	return l.root() + "id/" + strconv.FormatUint(uint64(id), 10)
}

func (l etcdLayout) name(name string) string { return l.root() + "name/" + name }

func (l etcdLayout) addresses(name string) string { return l.root() + "addresses/" + name }

// probe returns a key that does not exist. A request for it checks whether etcd answers.
func (l etcdLayout) probe() string { return l.prefix + "/probe" }

// parsedKey is the information in a key: kind, ID or name.
type parsedKey struct {
	kind kind
	id   uint32 // kindID
	name string // kindName, kindAddresses
}

// parse satisfies layout. It refuses other spellings of an ID, such as "07".
func (l etcdLayout) parse(key string) parsedKey {
	family, rest, ok := strings.Cut(strings.TrimPrefix(key, l.root()), "/")
	if !ok || !strings.HasPrefix(key, l.root()) {
		return parsedKey{}
	}
	switch {
	case family == "id":
		id, err := strconv.ParseUint(rest, 10, 32)
		if err != nil || id == 0 || l.id(uint32(id)) != key {
			return parsedKey{}
		}
		return parsedKey{kind: kindID, id: uint32(id)}
	case family == "name" && validNodeName(rest):
		return parsedKey{kind: kindName, name: rest}
	case family == "addresses" && validNodeName(rest):
		return parsedKey{kind: kindAddresses, name: rest}
	default:
		return parsedKey{}
	}
}

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

// Store is the place in which the nodes of a cluster share their records: etcd (NewEtcdStore) or
// Leases of the API server (NewLeaseStore). A Store serves one Syncer. It never retries; the Syncer
// does.
//
// A store has keys with values, and a revision that grows with every write. The interface has only
// the requests of a Syncer; the logic (which ID, when, for which node) is the same for all stores.
type Store interface {
	traits() traits
	// list returns everything under the layout at one revision.
	list(ctx context.Context) (listed, error)
	// watch passes all changes after a revision on, in order, until ctx or the watch ends. It
	// calls out without changes once it knows that the store serves the watch. It returns the
	// revision at which another watch may continue; 0 means that a list must come first. The
	// error is the reason of its end: errGap if changes may be missing, nil if the store ended
	// the watch normally.
	watch(ctx context.Context, after int64, out func([]change)) (int64, error)
	// transact carries out an operation: one of its branches, or nothing. It is called by one
	// goroutine at a time.
	transact(ctx context.Context, op *operation) wrote
}

// prober is a store whose watch does not notice in time that the store is away. For other stores an
// open watch means that the store answers.
type prober interface {
	// probe checks whether the store answers; errGap means that the store has lost data.
	probe(ctx context.Context) error
}

// traits are the differences between stores beyond their requests.
type traits struct {
	// name is the name of the store in reasons and in the log.
	name   string
	layout layout
	// relist is the interval of complete lists, in case a watch has missed changes.
	relist time.Duration
	// turn and maxTurn spread the claims of many nodes after a conflict: a node waits one turn
	// for each node before it, less than maxTurn in total.
	turn, maxTurn time.Duration
}

// wrote is the outcome of an operation.
type wrote struct {
	op *operation
	// ok is false if a guard did not hold, so that the operation was not carried out.
	ok bool
	// revision of the store after the operation; 0 = unknown.
	revision int64
	// err means that the outcome is unknown until the watch shows it.
	err error
}

var (
	// errGap means that the watch cannot continue from its revision, so that a new list is
	// needed.
	errGap = errors.New("watch has a gap")
	// errWatchEnded means that the API server ended a watch without an error.
	errWatchEnded = errors.New("the watch ended")
)
